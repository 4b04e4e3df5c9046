"""A request's body, read whole; one that is too large or comes too slowly is refused, as early as that can be known."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive

from quantgate_engine.server.api_error import ApiError, unavailable
from quantgate_engine.server.client_watch import ClientLeftError

_RETRY_AFTER_S = 1.0


class BodyReader:
    """Reads bodies before their requests take a place among those that wait for the engine.

    limit: bytes of one body. patience_s: how long one may take to come. most_arriving: bytes of all bodies that are on
    their way, so that what waits for its last byte is bounded as a whole too.
    """

    def __init__(self, limit: int, patience_s: float, most_arriving: int) -> None:
        self._limit = limit
        self._patience_s = patience_s
        self._most_arriving = most_arriving
        self._arriving = 0

    async def read(self, receive: Receive, content_length: str | None) -> bytes:
        """The whole body.

        Raises ApiError 413 above the limit, which the announced `content_length` may be already, 408 where the body is
        not here in time, 503 where too much is on its way, and ClientLeftError where the client goes meanwhile.
        """
        if content_length is not None and content_length.isdecimal() and int(content_length) > self._limit:
            raise self._too_large()
        parts = list[bytes]()
        received = 0
        try:
            async with asyncio.timeout(self._patience_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeftError
                    part = message.get("body", b"")
                    parts.append(part)
                    received += len(part)
                    self._arriving += len(part)
                    if received > self._limit:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
                    if self._arriving > self._most_arriving:
                        raise unavailable(
                            "The server waits for the rest of too many large bodies; try again shortly.",
                            "queue_full",
                            _RETRY_AFTER_S,
                        )
        except TimeoutError as late:
            raise ApiError(
                408, f"The request's body did not come within {self._patience_s:g} s.", code="body_too_slow"
            ) from late
        finally:
            self._arriving -= received

    def _too_large(self) -> ApiError:
        return ApiError(
            413, f"The request's body is above this server's limit of {self._limit} bytes.", code="body_too_large"
        )


def with_body(body: bytes, receive: Receive) -> Receive:
    """`receive` as if the body had not been read: all of it at once, then what comes after it (the disconnect)."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
