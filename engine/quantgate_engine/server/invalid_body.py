"""One sentence about what is wrong with a request's body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError

from quantgate_engine.server.api_error import ApiError, bad_request
from quantgate_engine.server.json_body import NO_OBJECT
from quantgate_engine.server.protocol.forms import is_form

_OF_A_KEY = "[key]"
_PLAINER = {
    "dict_type": "expected an object",
    "missing": "it is missing; this request needs it",
    "model_attributes_type": "expected an object",
    "model_type": "expected an object",
    "too_long": "expected at most {max_length} entries, and there are more",
    "too_short": "expected at least {min_length} entry, and there is none",
}
"""For errors that pydantic tells in words of Python."""


def invalid_body(error: RequestValidationError, content_type: str | None) -> ApiError:
    """ApiError 400 that names the first field at fault, where in it, and what was expected.

    content_type: of the request; only a body that is declared as JSON is read as such.
    """
    first = error.errors()[0]
    plainer = _PLAINER.get(first["type"])
    message = first["msg"] if plainer is None else plainer.format_map(first.get("ctx", {}))
    location = [part for part in first["loc"][1:] if part != _OF_A_KEY and not is_form(part)]
    named = first.get("ctx", {}).get("field")
    if named is not None:
        location = [*location, named]
    if not location:
        body = first["input"]
        return bad_request(f"{first['msg']}." if isinstance(body, dict) else _no_object(body, content_type))
    return bad_request(f"{_path(location)}: {message}.", str(location[0]))


def _path(location: Sequence[Any]) -> str:
    """As messages.0.role; a name that would not read as one word stands in quotes."""
    return ".".join(
        part if isinstance(part, str) and part.replace("_", "a").isalnum() and part.isascii() else ascii(part)
        for part in location
    )


def _no_object(body: object, content_type: str | None) -> str:
    if body is None:
        return "The body is empty; expected a JSON object, sent with Content-Type application/json."
    if isinstance(body, bytes):
        stated = f"is {content_type!r:.80}" if content_type else "is missing"
        return f"The header Content-Type {stated}; expected application/json, with a JSON object as the body."
    return NO_OBJECT
