"""From messages to token ids, under the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.quality.quality_model import Tokenizer
from quantgate.traces.record import Message


def prompt_token_ids(tokenizer: Tokenizer, messages: Sequence[Message]) -> list[int]:
    """The chat as token ids, ending where the assistant's answer begins."""
    text = tokenizer.apply_chat_template(
        [{"role": message.role, "content": message.content} for message in messages],
        tokenize=False,
        add_generation_prompt=True,
    )
    # The template has written every special token that belongs there.
    return tokenizer.encode(text, add_special_tokens=False)


def continuation_token_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of an answer's text on its own: a chat template ends where words never join with what follows."""
    token_ids = tokenizer.encode(text, add_special_tokens=False)
    if not token_ids:
        raise ValueError("A continuation of no tokens has no log-probability.")
    return token_ids
