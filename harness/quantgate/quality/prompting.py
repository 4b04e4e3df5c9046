"""From messages to token ids, under the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import TemplateError

from quantgate.quality.quality_model import Tokenizer
from quantgate.traces.record import Message
from quantgate_engine.errors import ConfigurationError


def prompt_token_ids(tokenizer: Tokenizer, messages: Sequence[Message]) -> list[int]:
    """The chat as token ids, ending where the assistant's answer begins.

    Raises ConfigurationError where the tokenizer has no chat template, or one that refuses these messages.
    """
    try:
        text = tokenizer.apply_chat_template(
            [{"role": message.role, "content": message.content} for message in messages],
            tokenize=False,
            add_generation_prompt=True,
        )
    except (ValueError, TemplateError) as error:
        raise ConfigurationError(
            f"The model's tokenizer cannot put the chat messages of a task into a prompt ({error}); use a model whose "
            "chat template takes them, or leave the tasks out of the suite."
        ) from error
    # The template has written every special token that belongs there.
    return tokenizer.encode(text, add_special_tokens=False)


def continuation_token_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of an answer's text on its own: a chat template ends where words never join with what follows."""
    token_ids = tokenizer.encode(text, add_special_tokens=False)
    if not token_ids:
        raise ValueError("A continuation of no tokens has no log-probability.")
    return token_ids
