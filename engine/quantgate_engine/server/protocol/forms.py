"""Fields of several forms: the value's own kind says which is meant, so that one error says what is wrong and where.

Without that, pydantic tries every form, and collects an error for every entry in each of them.
"""

from __future__ import annotations

from typing import Any

from pydantic import Discriminator

TEXT = "<text>"
LIST = "<list>"
IDS = "<token ids>"
ID_LISTS = "<lists of token ids>"


def is_form(part: object) -> bool:
    """Whether a part of an error's location names a form, and no field of the body."""
    return isinstance(part, str) and part.startswith("<") and part.endswith(">")


def text_or_list(expected: str) -> Discriminator:
    """A text or a list; `expected` completes the sentence about anything else."""
    return _discriminator(_text_or_list, expected)


def text_or_tokens(expected: str) -> Discriminator:
    """A text, token ids, texts, or lists of token ids: the first entry says which list it is."""
    return _discriminator(_text_or_tokens, expected)


def _discriminator(form_of: Any, expected: str) -> Discriminator:
    return Discriminator(form_of, custom_error_type="no_form", custom_error_message=f"expected {expected}")


def _text_or_list(value: Any) -> str | None:
    if isinstance(value, str):
        return TEXT
    return LIST if isinstance(value, list) else None


def _text_or_tokens(value: Any) -> str | None:
    if not isinstance(value, list):
        return TEXT if isinstance(value, str) else None
    first = value[0] if value else None
    if isinstance(first, list):
        return ID_LISTS
    if isinstance(first, str):
        return LIST
    return IDS if isinstance(first, int) else None
