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

    An ApiError in mid-stream becomes the last event, and [DONE] is left out. patience_s: a client that takes nothing
    for so long has its connection cut.
    """

    def __init__(self, objects: AsyncGenerator[dict[str, Any], None], patience_s: float) -> None:
        self._events = _events(objects)
        self._patience_s = patience_s
        # Proxies that collect a response before they pass it on would undo the streaming.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(self._events, media_type="text/event-stream", headers=headers)

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


async def _events(objects: AsyncGenerator[dict[str, Any], None]) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(objects):
            async for item in objects:
                yield _event(item)
        yield b"data: [DONE]\n\n"
    except ApiError as failure:
        yield _event(failure.body())


def _event(item: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
