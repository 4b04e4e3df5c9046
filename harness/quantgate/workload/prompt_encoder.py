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

# Rough for English text under today's tokenizers; good enough to tell short prompts from long ones.
_CHARACTERS_PER_TOKEN = 4


class PromptEncoder:
    """Encodes records under one tokenizer, its chat template and one seed.

    Without a tokenizer (None) texts stay texts, lengths are what the trace counted, and what needs more is refused
    with a ConfigurationError.
    """

    def __init__(self, tokenizer: Tokenizer | None, seed: int = 0) -> None:
        self._tokenizer = tokenizer
        self._seed = seed
        self._encoded: dict[tuple[Message, ...] | str, tuple[int, ...]] = {}

    @property
    def has_tokenizer(self) -> bool:
        return self._tokenizer is not None

    def known_count(self, record: TraceRecord) -> int | None:
        """Prompt tokens of the record, template and generation prompt included; None where nobody can tell.

        A text is counted under the run's own tokenizer where there is one: what the trace counted was another model's.
        """
        if record.prompt_token_ids is None and record.has_text and self.has_tokenizer:
            return len(self.encode(record))
        return known_prompt_tokens(record)

    def count(self, record: TraceRecord) -> int:
        """Like `known_count`; raises ConfigurationError where nobody can tell."""
        known = self.known_count(record)
        if known is None:
            raise ConfigurationError(
                f"Request {record.request_id}: the length of its prompt is unknown, because the trace does not tell it "
                "and no tokenizer was given; give one with --tokenizer NAME, or leave prompt lengths unlimited."
            )
        return known

    def rough_count(self, record: TraceRecord) -> int:
        """Prompt tokens to the order of magnitude, without encoding a large log: recorded, or by characters."""
        known = known_prompt_tokens(record)
        if known is not None:
            return known
        texts = [record.prompt_text or "", *(message.content for message in record.messages or ())]
        return -(-sum(map(len, texts)) // _CHARACTERS_PER_TOKEN)

    def encode(self, record: TraceRecord) -> tuple[int, ...]:
        """The prompt's token ids; empty for a text without a tokenizer.

        Messages go through the chat template with its generation prompt; a raw prompt gets the special tokens that the
        tokenizer adds by itself; a count is filled with seeded words, the same ones for equal blocks.
        """
        if record.prompt_token_ids is not None:
            return record.prompt_token_ids
        if record.has_text and self._tokenizer is None:
            return ()
        if record.messages is not None:
            return self.encode_messages(record.messages)
        if record.prompt_text is not None:
            tokenizer = self._required_tokenizer
            return self._once(record.prompt_text, lambda text: tokenizer.encode(text, add_special_tokens=True))
        if record.prompt_token_count is not None and record.prompt_blocks is not None:
            return self._filler.draw_blocks(record.prompt_blocks, record.prompt_token_count)
        if record.prompt_token_count is not None:
            return self._filler.draw(record.request_id, record.prompt_token_count)
        raise ConfigurationError(
            f"Request {record.request_id} has no prompt; expected messages, a text, token ids or a token count."
        )

    def encode_messages(self, messages: tuple[Message, ...]) -> tuple[int, ...]:
        """The token ids of a conversation, its chat template and generation prompt included."""
        tokenizer = self._required_tokenizer
        return self._once(
            messages, lambda messages: tokenizer.encode(_templated(tokenizer, messages), add_special_tokens=False)
        )

    def _once(self, prompt: _Prompt, encode: Callable[[_Prompt], list[int]]) -> tuple[int, ...]:
        """Counting, cutting and planning ask for the same prompts again: each is encoded once."""
        if prompt not in self._encoded:
            self._encoded[prompt] = tuple(encode(prompt))
        return self._encoded[prompt]

    @property
    def _required_tokenizer(self) -> Tokenizer:
        if self._tokenizer is None:
            raise ConfigurationError(
                "The trace tells lengths without texts, and filling prompts of that length takes a tokenizer; give one "
                "with --tokenizer NAME, or replay a trace with texts."
            )
        return self._tokenizer

    @cached_property
    def _filler(self) -> FillerTokens:
        """Made on first use: it decodes the whole vocabulary, which traces with text never need."""
        return FillerTokens(self._required_tokenizer, self._seed)


def _templated(tokenizer: Tokenizer, messages: tuple[Message, ...]) -> str:
    conversation = [{"role": message.role, "content": message.content} for message in messages]
    try:
        return tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
    except (ValueError, TemplateError) as error:
        raise ConfigurationError(
            f"The model's tokenizer cannot put these chat messages into a prompt ({error}); use a model whose chat "
            "template takes them, or a trace with plain prompts."
        ) from error
