"""Server-sent events (WHATWG HTML, section 9.2) as OpenAI's interface uses them: one JSON object each, then [DONE]."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from quantgate_engine.server.api_error import ApiError
from quantgate_engine.server.client_watch import ClientLeftError, unless_client_leaves


class EventStream(StreamingResponse):
    """Sends each object as an event as it comes. A client that leaves closes the generator at once.

    An ApiError in mid-stream becomes the last event, and [DONE] is left out. first: the object that came already;
    None where there is none. patience_s: a client that takes nothing for so long has its connection cut.
    """

    def __init__(
        self, first: dict[str, Any] | None, rest: AsyncGenerator[dict[str, Any], None], patience_s: float
    ) -> None:
        self._rest = rest
        self._events = _events(first, rest)
        self._patience_s = patience_s
        # Proxies that collect a response before they pass it on would undo the streaming.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(self._events, media_type="text/event-stream", headers=headers)

    @classmethod
    async def begun(cls, objects: AsyncGenerator[dict[str, Any], None], patience_s: float) -> EventStream:
        """The stream as soon as its first object is here; raises the ApiError that comes in its place.

        So a request that fails before its first token has the status that says why, as without a stream.
        """
        return cls(await anext(objects, None), objects, patience_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope  # A response needs nothing of it.

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._patience_s):
                await send(message)

        try:
            await unless_client_leaves(receive, self.stream_response(send_in_time))
        except (ClientLeftError, TimeoutError):
            return
        finally:
            await self._events.aclose()
            # Events that nobody began to read do not close what they read from.
            await self._rest.aclose()


async def _events(
    first: dict[str, Any] | None, rest: AsyncGenerator[dict[str, Any], None]
) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(rest):
            if first is not None:
                yield _event(first)
            async for item in rest:
                yield _event(item)
        yield b"data: [DONE]\n\n"
    except ApiError as failure:
        yield _event(failure.body())


def _event(item: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
