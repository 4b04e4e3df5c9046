"""One line of our own JSONL trace format (`quantgate.trace/1`).

The descriptions say what is expected, so that the published JSON schema and the error messages use the same words.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from quantgate.traces.checker import Checker
from quantgate.traces.prompt_blocks import PromptBlocks, misfit
from quantgate.traces.record import Message, TraceRecord

NANOSECONDS_PER_SECOND = 1_000_000_000

# Bounds that keep times in nanoseconds and sums of tokens within 64-bit integers.
LONGEST_SECONDS = 1_000_000_000
MOST_TOKENS = 1_000_000_000

BlockId = Annotated[int, Field(ge=0, le=2**63 - 1)]
TokenId = Annotated[int, Field(ge=0, le=2**31 - 1)]


def nanoseconds(seconds: float) -> int:
    """The nearest whole number of them: multiplied as a whole, a float would lose nanoseconds after a month."""
    whole = int(seconds)
    return whole * NANOSECONDS_PER_SECOND + round((seconds - whole) * NANOSECONDS_PER_SECOND)


class NativeMessage(BaseModel):
    """One chat message."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["system", "user", "assistant", "tool"] = Field(
        description="one of 'system', 'user', 'assistant', 'tool'"
    )
    content: str = Field(description="a text (what was said)")


_PROMPT_KINDS = ("messages", "prompt", "prompt_tokens", "prompt_token_ids")
_BLOCK_FIELDS = ("prompt_tokens", "prompt_blocks", "block_tokens")


def _given(name: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


class NativeRow(BaseModel):
    """One request: exactly one of `messages`, `prompt`, `prompt_tokens` and `prompt_token_ids` says what was asked."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "oneOf": [_given(name) for name in _PROMPT_KINDS],
            "allOf": [
                {"if": _given(name), "then": {"allOf": [_given(other) for other in _BLOCK_FIELDS if other != name]}}
                for name in _BLOCK_FIELDS[1:]
            ],
            "not": {"allOf": [_given("prompt_tokens"), _given("recorded_prompt_tokens")]},
        },
    )

    id: str = Field(min_length=1, description="a text of at least one character (unique in the file)")
    offset: float = Field(ge=0, le=LONGEST_SECONDS, description="a number from 0 to 1e9 (seconds from the start)")
    messages: tuple[NativeMessage, ...] | None = Field(
        None, min_length=1, description="a list of at least one message (the chat so far)"
    )
    prompt: str | None = Field(None, min_length=1, description="a text of at least one character (a raw prompt)")
    prompt_tokens: int | None = Field(
        None,
        ge=1,
        le=MOST_TOKENS,
        description="an integer of at least 1 (tokens of a prompt without text)",
    )
    prompt_blocks: tuple[BlockId, ...] | None = Field(
        None, description="a list of integers from 0 (ids of the prompt's blocks; equal ids are equal tokens)"
    )
    block_tokens: int | None = Field(
        None, ge=1, le=MOST_TOKENS, description="an integer of at least 1 (tokens of each block but the last)"
    )
    prompt_token_ids: tuple[TokenId, ...] | None = Field(
        None, min_length=1, description="a list of at least one integer from 0 (the prompt under one tokenizer)"
    )
    recorded_prompt_tokens: int | None = Field(
        None,
        ge=0,
        le=MOST_TOKENS,
        description="an integer from 0 (tokens that the recording server counted in the prompt)",
    )
    max_tokens: int = Field(ge=1, le=MOST_TOKENS, description="an integer of at least 1 (output tokens, at most 1e9)")
    limit_tokens: int | None = Field(
        None, ge=1, le=MOST_TOKENS, description="an integer of at least 1 (output tokens that the request allowed)"
    )
    slo_class: str = Field("interactive", alias="class", min_length=1, description="the name of an SLO class")
    session: str | None = Field(None, min_length=1, description="a text of at least one character (the session's id)")
    turn: int = Field(1, ge=1, description="an integer of at least 1 (position in the session)")
    think_time: float = Field(
        0, ge=0, le=LONGEST_SECONDS, description="a number from 0 to 1e9 (seconds after the previous answer)"
    )
    tags: tuple[str, ...] = Field((), description="a list of texts (such as chat, rag, code, tools)")
    checker: Checker | None = Field(
        None, description="an object whose kind is 'contains', 'regex', 'tool_call' or 'python_syntax'"
    )
    disconnect_after: int | None = Field(
        None, ge=1, description="an integer of at least 1 (output tokens after which the client leaves)"
    )
    disconnect_after_s: float | None = Field(
        None,
        gt=0,
        le=LONGEST_SECONDS,
        description="a number above 0, up to 1e9 (seconds after sending in which the client leaves)",
    )
    read_tokens_per_s: float | None = Field(
        None, gt=0, le=MOST_TOKENS, description="a number above 0, up to 1e9 (tokens that the client reads per second)"
    )

    @model_validator(mode="after")
    def _one_prompt_and_a_session_for_turns(self) -> Self:
        given = [name for name in _PROMPT_KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "prompt_kinds",
                "expected exactly one of messages, prompt, prompt_tokens and prompt_token_ids, got {given}",
                {"given": " and ".join(given) or "none of them"},
            )
        if self.prompt_tokens is not None and self.recorded_prompt_tokens is not None:
            raise PydanticCustomError(
                "length_kinds",
                "expected recorded_prompt_tokens only beside a prompt, got it beside prompt_tokens",
                {},
            )
        self._check_blocks()
        if self.session is None and self.turn > 1:
            raise PydanticCustomError("turn_without_session", "expected a session for a turn above 1, got none", {})
        if self.think_time > 0 and self.turn == 1:
            raise PydanticCustomError(
                "think_time_without_turn", "expected think_time only on turns above 1, got it on turn 1", {}
            )
        return self

    def _check_blocks(self) -> None:
        if self.prompt_blocks is None and self.block_tokens is None:
            return
        if self.prompt_tokens is None or self.prompt_blocks is None or self.block_tokens is None:
            raise PydanticCustomError(
                "incomplete_blocks",
                "expected prompt_tokens, prompt_blocks and block_tokens together, got {given}",
                {"given": " and ".join(name for name in _BLOCK_FIELDS if getattr(self, name) is not None)},
            )
        wrong = misfit(len(self.prompt_blocks), self.prompt_tokens, self.block_tokens)
        if wrong is not None:
            raise PydanticCustomError("misfitting_blocks", "{wrong}", {"wrong": wrong, "field": "prompt_blocks"})

    def to_record(self) -> TraceRecord:
        """The record, with times in whole nanoseconds."""
        return TraceRecord(
            request_id=self.id,
            scheduled_ns=nanoseconds(self.offset),
            max_tokens=self.max_tokens,
            messages=None
            if self.messages is None
            else tuple(Message(message.role, message.content) for message in self.messages),
            prompt_text=self.prompt,
            prompt_token_ids=self.prompt_token_ids,
            prompt_token_count=self.recorded_prompt_tokens if self.prompt_tokens is None else self.prompt_tokens,
            prompt_blocks=None
            if self.prompt_blocks is None or self.block_tokens is None
            else PromptBlocks(self.prompt_blocks, self.block_tokens),
            slo_class=self.slo_class,
            session_id=self.session,
            turn=self.turn,
            think_time_ns=nanoseconds(self.think_time),
            tags=self.tags,
            checker=None if self.checker is None else self.checker.model_dump(),
            disconnect_after_tokens=self.disconnect_after,
            limit_tokens=self.limit_tokens,
            disconnect_after_ns=None
            if self.disconnect_after_s is None
            else round(self.disconnect_after_s * NANOSECONDS_PER_SECOND),
            read_tokens_per_s=self.read_tokens_per_s,
        )


def native_json_schema() -> dict[str, Any]:
    """The JSON schema of one line, as published for editors and importers."""
    return NativeRow.model_json_schema(by_alias=True)
