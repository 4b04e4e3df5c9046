"""The JSON object that a request's body has to be, and one sentence where it is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import override

from quantgate_engine.server.api_error import ApiError, bad_request

MAX_DEPTH = 64
"""Lists and objects inside one another; far more than any field asks for, and few enough for every reader of them."""
NO_OBJECT = "The body is JSON, but no object; expected a JSON object."

_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


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
        return json_object(await self.body())


def json_object(body: bytes) -> dict[str, Any]:
    """Raises ApiError 400 where the body cannot be read, and JSONDecodeError, which says where, for broken JSON."""
    try:
        # By hand: the library lets halves of characters pass.
        document = json.loads(body.decode())
    except UnicodeDecodeError as wrong:
        raise bad_request(
            f"The body is not UTF-8 (byte {body[wrong.start]:#04x} at position {wrong.start}); send JSON in UTF-8."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        # Python's own limit on the digits of an integer.
        raise bad_request(
            "The body holds a number of thousands of digits; expected one that a field may have."
        ) from None
    if not isinstance(document, dict):
        raise bad_request(NO_OBJECT)
    _refuse_depth(document)
    if _ESCAPED_SURROGATE.search(body):
        _refuse_halves_of_characters(document)
    return document


def _refuse_depth(document: dict[str, Any]) -> None:
    level: list[Any] = [document]
    for _ in range(MAX_DEPTH):
        level = [child for each in level for child in _children(each) if isinstance(child, (dict, list))]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> ApiError:
    return bad_request(
        f"The body has lists or objects inside one another more than {MAX_DEPTH} deep; send a flatter one."
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
