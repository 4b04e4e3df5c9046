"""What a check says of a wrong value, without the kind of error that pydantic writes before it."""

from __future__ import annotations

_KINDS = ("Value error, ", "Assertion failed, ")


def without_kind(message: str) -> str:
    """`'x' is not one of 'a'`, where pydantic says "Value error, 'x' is not one of 'a'"."""
    return next((message.removeprefix(kind) for kind in _KINDS if message.startswith(kind)), message)
