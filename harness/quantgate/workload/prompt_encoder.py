"""Turns a record's question, however the trace tells it, into the token ids that every arm is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from jinja2 import TemplateError

from quantgate.traces.record import Message, TraceRecord
from quantgate.traces.traffic_shape import known_prompt_tokens
from quantgate.workload.filler_tokens import FillerTokens
from quantgate.workload.tokenizer import Tokenizer
from quantgate_engine.errors import ConfigurationError

_Prompt = TypeVar("_Prompt", tuple[Message, ...], str)


class PromptEncoder:
    """Encodes records under one tokenizer, its chat template and one seed."""

    def __init__(self, tokenizer: Tokenizer, seed: int = 0) -> None:
        self._tokenizer = tokenizer
        self._seed = seed
        self._encoded: dict[tuple[Message, ...] | str, tuple[int, ...]] = {}

    def count(self, record: TraceRecord) -> int:
        """Prompt tokens of the record, template and generation prompt included."""
        known = known_prompt_tokens(record)
        return len(self.encode(record)) if known is None else known

    def encode(self, record: TraceRecord) -> tuple[int, ...]:
        """The prompt's token ids.

        Messages go through the chat template with its generation prompt; a raw prompt gets the special tokens that the
        tokenizer adds by itself; a count is filled with seeded words.
        """
        if record.prompt_token_ids is not None:
            return record.prompt_token_ids
        if record.messages is not None:
            return self._once(
                record.messages,
                lambda messages: self._tokenizer.encode(self._templated(messages), add_special_tokens=False),
            )
        if record.prompt_text is not None:
            return self._once(record.prompt_text, lambda text: self._tokenizer.encode(text, add_special_tokens=True))
        if record.prompt_token_count is not None:
            return self._filler.draw(record.request_id, record.prompt_token_count)
        raise ConfigurationError(
            f"Request {record.request_id} has no prompt; expected messages, a text, token ids or a token count."
        )

    def _once(self, prompt: _Prompt, encode: Callable[[_Prompt], list[int]]) -> tuple[int, ...]:
        """Counting, cutting and planning ask for the same prompts again: each is encoded once."""
        if prompt not in self._encoded:
            self._encoded[prompt] = tuple(encode(prompt))
        return self._encoded[prompt]

    def _templated(self, messages: tuple[Message, ...]) -> str:
        conversation = [{"role": message.role, "content": message.content} for message in messages]
        try:
            return self._tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
        except (ValueError, TemplateError) as error:
            raise ConfigurationError(
                f"The model's tokenizer cannot put these chat messages into a prompt ({error}); use a model whose chat "
                "template takes them, or a trace with plain prompts."
            ) from error

    @cached_property
    def _filler(self) -> FillerTokens:
        """Made on first use: it decodes the whole vocabulary, which traces with text never need."""
        return FillerTokens(self._tokenizer, self._seed)
