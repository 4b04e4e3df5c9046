"""One event of a stream, read: what it says of the answer, whichever API it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

_LARGEST = 2**31 - 1
"""What the tables hold of a token id or a count of tokens: no vocabulary or context comes near it."""


class MalformedEventError(ValueError):
    """An event that is no JSON or lacks its fields; the message says what is wrong in a few words."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counts them; None where it does not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """What one event adds. None: the server says nothing about it.

    text: of the answer, and reasoning_text: of the reasoning before it, as sent. token_ids: of the tokens in this
    event. logprob_tokens: how many tokens the event gives log-probs of. usage: of the whole answer so far. degraded:
    `DEGRADED` where the server cut the request so that it could run (quantgate's own server says so at the choice).
    """

    text: str = ""
    reasoning_text: str = ""
    token_ids: tuple[int, ...] | None = None
    logprob_tokens: int | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    degraded: str | None = None

    @property
    def has_tokens(self) -> bool:
        """Whether tokens came in this event: text, or tokens whose text is not complete yet or not shown."""
        return bool(self.text or self.reasoning_text or self.token_ids or self.logprob_tokens)


def first_choice(document: dict[str, Any]) -> dict[str, Any] | None:
    """The choice with index 0, which is all that a replay asks for; None where the event has none (usage alone)."""
    choices = document.get("choices")
    if choices is None and "usage" in document:
        return None
    if not isinstance(choices, list):
        raise MalformedEventError("it has no choices")
    for choice in choices:
        if not isinstance(choice, dict):
            raise MalformedEventError("a choice is no object")
        if choice.get("index", 0) == 0:
            return choice
    return None


def text_at(holder: dict[str, Any], *keys: str) -> str:
    """The first of these fields that holds text; nothing where none does."""
    for key in keys:
        value = holder.get(key)
        if value is not None and not isinstance(value, str):
            raise MalformedEventError(f"{key} is no text")
        if value:
            return value
    return ""


DEGRADED = "its server says that it cut something from it"
"""In place of the server's own words, which may quote the prompt: runs without text keep this column."""


def degraded_in(choice: dict[str, Any]) -> str | None:
    """`DEGRADED` where the server says what it cut; None where it says nothing, or the field is something else."""
    degraded = choice.get("degraded")
    return DEGRADED if isinstance(degraded, str) and degraded.strip() else None


def token_ids_in(choice: dict[str, Any]) -> tuple[int, ...] | None:
    ids = choice.get("token_ids")
    if ids is None:
        return None
    if not isinstance(ids, list) or not all(map(is_token_number, ids)):
        raise MalformedEventError("token_ids is no list of token ids")
    return tuple(ids)


def listed(holder: Any, key: str) -> int | None:
    """How many entries the list under `key` has; None where there is no such list."""
    entries = holder.get(key) if isinstance(holder, dict) else None
    return len(entries) if isinstance(entries, list) else None


def usage_in(document: dict[str, Any]) -> Usage | None:
    """vLLM, SGLang and llama.cpp send it with the last event, others with every one.

    A usage that cannot be read is not told: the answer beside it is none the worse.
    """
    usage = document.get("usage")
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    return Usage(
        prompt_tokens=count_at(usage, "prompt_tokens"),
        completion_tokens=count_at(usage, "completion_tokens"),
        cached_prompt_tokens=count_at(details, "cached_tokens"),
    )


def count_at(holder: Any, key: str) -> int | None:
    """The count under `key`; None where there is none, or something that cannot be one."""
    value = holder.get(key) if isinstance(holder, Mapping) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one kind of number: 10.0 is ten.
    return value if is_token_number(value) else None


def is_token_number(value: Any) -> TypeGuard[int]:
    """Whether it can be the id of a token or a count of tokens: a whole number that the tables hold, no truth value."""
    return type(value) is int and 0 <= value <= _LARGEST
