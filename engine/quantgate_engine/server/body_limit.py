"""Bodies that are too large or come too slowly are refused, as early as that can be known."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive

from quantgate_engine.server.api_error import ApiError


def refuse_declared(content_length: str | None, limit: int) -> None:
    """Raises ApiError 413 where the length that the client announces is above the limit."""
    if content_length is not None and content_length.isdecimal() and int(content_length) > limit:
        raise _too_large(limit)


def limited(receive: Receive, limit: int, patience_s: float) -> Receive:
    """`receive`, raising ApiError 413 above `limit` bytes of body, and 408 where it is not all here in `patience_s`.

    What comes after the body (the disconnect) may take as long as it likes.
    """
    received, complete = 0, False
    deadline = asyncio.get_running_loop().time() + patience_s

    async def counted() -> Message:
        nonlocal received, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError as late:
            raise ApiError(
                408, f"The request's body did not come within {patience_s:g} s.", code="body_too_slow"
            ) from late
        complete = not message.get("more_body", False)
        received += len(message.get("body", b""))
        if received > limit:
            raise _too_large(limit)
        return message

    return counted


def _too_large(limit: int) -> ApiError:
    return ApiError(413, f"The request's body is above this server's limit of {limit} bytes.", code="body_too_large")
