"""The JSON object that a request's body has to be, and one sentence where it is none.

What is refused here bounds the work of all who read the body after: checking fields takes far longer than parsing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from email.message import Message
from typing import Any, NoReturn

from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import override

from quantgate_engine.server.api_error import ApiError, bad_request

MAX_DEPTH = 64
"""Lists and objects inside one another; far more than any field asks for, and few enough for every reader of them."""
MAX_CONTAINERS = 16_384
"""Lists and objects in all: messages, their parts, prompts of a batch."""
MAX_VALUES = 1 << 20
"""Entries of all lists and objects in all; the longest contexts have so many tokens."""
NO_OBJECT = "The body is JSON, but no object; expected a JSON object."

_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_GZIP = b"\x1f\x8b"
_READ_AS_UTF8 = ("utf-8", "utf8", "us-ascii", "ascii")


class JsonBodyRoute(APIRoute):
    """A route that reads its body by `json_object`: the framework's own reading does not say what is wrong."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_own_reading(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return handle_own_reading


class _JsonRequest(Request):
    @override
    async def json(self) -> dict[str, Any]:
        _refuse_other_codings(self.headers)
        return json_object(await self.body())


def json_object(body: bytes) -> dict[str, Any]:
    """Raises ApiError 400 where the body cannot be read, or is larger in its parts than any request has to be."""
    if body.startswith(_GZIP):
        raise bad_request("The body is compressed (gzip); send it as it is, uncompressed JSON in UTF-8.")
    _refuse_many_containers(body)
    try:
        # By hand: the library lets halves of characters pass.
        document = json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except UnicodeDecodeError as wrong:
        raise bad_request(
            f"The body is not UTF-8 (byte {body[wrong.start]:#04x} at position {wrong.start}); send JSON in UTF-8."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as wrong:
        what = wrong.msg.removesuffix(" at")
        raise bad_request(
            f"The body is not valid JSON: {what} at line {wrong.lineno}, column {wrong.colno} (character {wrong.pos} "
            "from 0 on)."
        ) from None
    except ValueError:
        # Python's own limit on the digits of an integer.
        raise bad_request(
            "The body holds a number of thousands of digits; expected one that a field may have."
        ) from None
    if not isinstance(document, dict):
        raise bad_request(NO_OBJECT)
    _refuse_sizes(document)
    if _ESCAPED_SURROGATE.search(body):
        _refuse_halves_of_characters(document)
    return document


def _refuse_many_containers(body: bytes) -> None:
    """Before they are made: millions of them keep the parser, and the memory's collector, busy for seconds."""
    if _openings(body) > MAX_CONTAINERS:
        # Every second piece between quotation marks, those that are escaped left out, stands outside of strings.
        outside = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
        if sum(map(_openings, outside)) > MAX_CONTAINERS:
            raise bad_request(
                f"The body has more than {MAX_CONTAINERS} lists and objects; send fewer messages or prompts at a time."
            )


def _openings(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """No object may have a key twice: readers differ in which of the two counts."""
    made = dict(pairs)
    if len(made) < len(pairs):
        seen = set[str]()
        for key, _ in pairs:
            if key in seen:
                raise bad_request(f"The body has the key {key!a} twice in one object; give it once.")
            seen.add(key)
    return made


def _refuse_other_codings(headers: Headers) -> None:
    coding = headers.get("content-encoding", "identity").strip()
    if coding.lower() not in ("", "identity"):
        raise bad_request(
            f"The header Content-Encoding is {coding!r:.80}; this server reads bodies as they are: leave it out and "
            "send uncompressed JSON."
        )
    stated = Message()
    stated["Content-Type"] = headers.get("content-type", "")
    charset = stated.get_param("charset")
    if charset is not None and str(charset).lower() not in _READ_AS_UTF8:
        raise bad_request(f"The header Content-Type states the charset {str(charset)!r:.80}; send JSON in UTF-8.")


def _refuse_constant(name: str) -> NoReturn:
    raise bad_request(f"The body is not valid JSON: it holds {name}, which JSON does not have.")


def _refuse_sizes(document: dict[str, Any]) -> None:
    values = len(document)
    for name, value in document.items():
        level = [value] if isinstance(value, (dict, list)) else []
        depth = 1
        while level:
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(name)
            values += sum(map(len, level))
            if values > MAX_VALUES:
                raise bad_request(
                    f"{ascii(name)[1:-1]} holds too much: a body may have {MAX_VALUES} values in all; send fewer.", name
                )
            level = [child for each in level for child in _children(each) if isinstance(child, (dict, list))]


def _too_deep(name: str | None = None) -> ApiError:
    where = "The body" if name is None else ascii(name)[1:-1]
    return bad_request(
        f"{where} has lists or objects inside one another more than {MAX_DEPTH} deep; send a flatter one.", name
    )


def _refuse_halves_of_characters(document: dict[str, Any]) -> None:
    for name, value in document.items():
        waiting = [name, value]
        while waiting:
            each = waiting.pop()
            if isinstance(each, str) and (half := _SURROGATE.search(each)) is not None:
                field = name if each is not name else ascii(name)
                raise bad_request(
                    f"{field} holds {ascii(half[0])[1:-1]}, half of a surrogate pair, which is no character; send both "
                    "halves or leave it out.",
                    field,
                )
            if isinstance(each, dict):
                waiting.extend(each)
            if isinstance(each, (dict, list)):
                waiting.extend(_children(each))


def _children(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container
