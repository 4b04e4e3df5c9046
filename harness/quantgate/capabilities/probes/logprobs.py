"""How many log-probs the server lists, for tokens of the prompt and for those that it generates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quantgate.capabilities.logprob_shapes import ListedPosition, read_logprobs, read_prompt_logprobs
from quantgate.capabilities.probes.asking import Asking
from quantgate.capabilities.token_texts import TokenTexts

_WHOLE_VOCABULARY = 1_000_000
_TRIED = (1000, 100, 20, 5, 1)
"""Servers refuse what is above their limit (vLLM's is 20, OpenAI's 5), or list fewer in silence."""

Read = Callable[[Any], Sequence[ListedPosition]]


@dataclass(frozen=True, slots=True)
class ListedLogprobs:
    """Most alternatives a position, by kind of token; None: not given."""

    prompt: int | None
    echoed: int | None
    generated: int | None
    identified: bool


async def probe_logprobs(asking: Asking, token_ids: Sequence[int], texts: TokenTexts) -> ListedLogprobs:
    async def prompt(k: int) -> Any:
        return await asking.completion("prompt log-probs", token_ids, max_tokens=1, temperature=0, prompt_logprobs=k)

    async def echoed(k: int) -> Any:
        return await asking.completion("echo", token_ids, max_tokens=1, temperature=0, echo=True, logprobs=k)

    async def generated(k: int) -> Any:
        return await asking.completion("log-probs", token_ids, max_tokens=1, temperature=0, logprobs=k)

    def of_echo(answer: Any) -> Sequence[ListedPosition]:
        positions = read_logprobs(answer, texts)
        if len(positions) < len(token_ids):
            raise ValueError("the echo lists fewer positions than the prompt has tokens")
        return positions[1 : len(token_ids)]

    of_prompt = await _most_listed(prompt, lambda answer: read_prompt_logprobs(answer, token_ids)[1:])
    of_echoed = None if of_prompt else await _most_listed(echoed, of_echo)
    # One position alone may list them all (llama.cpp does); for every token of a prompt that would be too much.
    most = (_WHOLE_VOCABULARY, *_TRIED)
    of_generated = await _most_listed(generated, lambda answer: read_logprobs(answer, texts)[:1], most)
    seen = of_generated or of_echoed
    return ListedLogprobs(
        prompt=of_prompt.alternatives if of_prompt else None,
        echoed=of_echoed.alternatives if of_echoed else None,
        generated=of_generated.alternatives if of_generated else None,
        identified=seen.identified if seen else False,
    )


@dataclass(frozen=True, slots=True)
class _Listing:
    alternatives: int
    identified: bool


async def _most_listed(
    ask: Callable[[int], Awaitable[Any]], read: Read, tried: Sequence[int] = _TRIED
) -> _Listing | None:
    """What the server really lists under the largest number that it accepts."""
    for k in tried:
        answer = await ask(k)
        if answer is None:
            continue
        try:
            positions = read(answer)
        except ValueError:
            return None
        if not positions or any(position.own is None for position in positions):
            return None
        named = sum(len(position.alternatives) for position in positions)
        listed = sum(position.listed for position in positions)
        fewest = min(position.listed for position in positions)
        return _Listing(min(k, fewest), identified=2 * named > listed)
    return None
