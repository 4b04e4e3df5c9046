"""Whether the server does as the sampling fields of a request say."""

from __future__ import annotations

from typing import Any

from quantgate.capabilities.answer_shapes import first_choice, text_of, usage_of
from quantgate.capabilities.probes.asking import Asking

_OPENING = "Once upon a time"
_SHORT_QUESTION = "Reply with one word: yes"
_DRAWN_TOKENS = 16
_MOST_TOKENS = 64
_TOKENS_PAST_THE_END = 8


async def honours_seed(asking: Asking, *, completions: bool) -> bool | None:
    """One seed twice and another once, at temperature 1: 16 tokens of a story are hardly ever equal by chance."""

    async def drawn(seed: int) -> str | None:
        fields = {"max_tokens": _DRAWN_TOKENS, "temperature": 1.0, "top_p": 1.0, "seed": seed}
        ask = asking.completion if completions else asking.chat
        return text_of(await ask("seeds", _OPENING, **fields))

    first, again, other = await drawn(1), await drawn(1), await drawn(2)
    if first is None or again is None or other is None:
        return None
    return first == again != other


async def honours_ignore_eos(asking: Asking, *, chat: bool) -> bool | None:
    """A question whose answer ends by itself, asked once more with `ignore_eos` and a larger limit than that answer."""
    if not chat:
        asking.notes.append("ignore_eos: not told (without chat, no answer that ends by itself)")
        return None
    fields = {"temperature": 0}
    plain = await asking.chat("ignore_eos", _SHORT_QUESTION, max_tokens=_MOST_TOKENS, **fields)
    length = usage_of(plain, "completion_tokens")
    if first_choice(plain).get("finish_reason") != "stop" or length is None:
        asking.notes.append(f"ignore_eos: not told (no answer ended by itself within {_MOST_TOKENS} tokens)")
        return None
    limit = length + _TOKENS_PAST_THE_END
    longer = await asking.chat("ignore_eos", _SHORT_QUESTION, max_tokens=limit, ignore_eos=True, **fields)
    return _ran_to(longer, limit)


def _ran_to(answer: Any, limit: int) -> bool:
    finished = first_choice(answer).get("finish_reason") == "length"
    return finished and usage_of(answer, "completion_tokens") in (None, limit)
