"""One sentence about what is wrong with a request's body."""

from __future__ import annotations

from fastapi.exceptions import RequestValidationError

from quantgate_engine.server.api_error import ApiError, bad_request
from quantgate_engine.server.json_body import NO_OBJECT

_MOST_FORMS = 4


def invalid_body(error: RequestValidationError, content_type: str | None) -> ApiError:
    """ApiError 400 that names the first field at fault, with all the forms that it might have had.

    content_type: of the request; only a body that is declared as JSON is read as such.
    """
    details = error.errors()
    first = details[0]
    if first["type"] == "json_invalid":
        return bad_request(f"The body is not valid JSON: {first.get('ctx', {}).get('error', first['msg'])}.")
    location = [str(part) for part in first["loc"][1:]]
    field = first.get("ctx", {}).get("field") or (location[0] if location else None)
    if field is None:
        body = first["input"]
        return bad_request(f"{first['msg']}." if isinstance(body, dict) else _no_object(body, content_type))
    of_field = [detail for detail in details if [str(part) for part in detail["loc"][1:2]] == location[:1]]
    # A field of several forms fails in each of them; each message is worth telling once.
    messages = list(dict.fromkeys(str(detail["msg"]) for detail in of_field))[:_MOST_FORMS]
    where = ".".join(location) if len(of_field) == 1 and location else field
    return bad_request(f"{where}: {'; or '.join(messages)}.", field)


def _no_object(body: object, content_type: str | None) -> str:
    if body is None:
        return "The body is empty; expected a JSON object, sent with Content-Type application/json."
    if isinstance(body, bytes):
        stated = f"is {content_type!r:.80}" if content_type else "is missing"
        return f"The header Content-Type {stated}; expected application/json, with a JSON object as the body."
    return NO_OBJECT
