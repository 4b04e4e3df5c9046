"""What a user may call a prompt, and how each kind becomes token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING

from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

ChatMessage = Mapping[str, str]
Prompt = str | Sequence[int] | Sequence[ChatMessage]
"""Text, token ids, or chat messages (`role` and `content`)."""


def encode_prompt(tokenizer: PreTrainedTokenizerFast, prompt: Prompt) -> tuple[int, ...]:
    """Token ids of a prompt: text as the tokenizer encodes it by default, chat messages through the model's template.

    The template opens the assistant's turn. Raises ConfigurationError where the prompt is of none of these kinds, or
    where the model has no template.
    """
    if isinstance(prompt, str):
        return tuple(tokenizer(prompt)["input_ids"])
    if all(isinstance(item, Integral) for item in prompt):
        return tuple(int(item) for item in prompt if isinstance(item, Integral))
    if not all(isinstance(item, Mapping) and {"role", "content"} <= item.keys() for item in prompt):
        raise ConfigurationError(
            "A prompt is a string, a list of token ids, or a list of chat messages with `role` and `content`; "
            f"got {str(prompt)[:80]!r}."
        )
    if tokenizer.chat_template is None:
        raise ConfigurationError("The model has no chat template; give the prompt as a string or as token ids.")
    messages = [dict(item) for item in prompt if isinstance(item, Mapping)]
    return tuple(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))
