"""Reads what the probe and the quality tiers need of an answer, under either API; nothing here raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from quantgate.targets.openai.piece import count_at, is_token_number
from quantgate.targets.openai.surrogates import mended


def first_choice(answer: Any) -> Mapping[str, Any]:
    """The first choice of an answer; empty where it has none."""
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    found = choices[0] if isinstance(choices, list) and choices else None
    return found if isinstance(found, Mapping) else {}


def text_of(answer: Any) -> str | None:
    """The text of an answer's first choice, in whole characters; None where it has no such shape."""
    choice = first_choice(answer)
    message = choice.get("message")
    text = message.get("content") if isinstance(message, Mapping) else choice.get("text")
    return mended(text) if isinstance(text, str) else None


def has_answer(answer: Any) -> bool:
    """Whether an answer's first choice is one of either API: a text, or a message whose content is text or absent (it
    may hold reasoning or tool calls alone)."""
    choice = first_choice(answer)
    message = choice.get("message")
    if isinstance(message, Mapping):
        return isinstance(message.get("content"), str | None)
    return isinstance(choice.get("text"), str)


def usage_of(answer: Any, count: Literal["prompt_tokens", "completion_tokens"]) -> int | None:
    """A count of an answer's usage, where the server tells one."""
    return count_at(answer.get("usage"), count) if isinstance(answer, Mapping) else None


def returned_ids(answer: Any) -> list[int]:
    """The ids of the generated tokens, where the server returned them; else empty."""
    token_ids = first_choice(answer).get("token_ids")
    found = token_ids if isinstance(token_ids, list) else []
    return found if all(map(is_token_number, found)) else []
