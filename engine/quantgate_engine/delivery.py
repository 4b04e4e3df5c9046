"""The way of a stream's chunks to its reader: the state of the output, apart from the state of the request."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from enum import Enum

from quantgate_engine.outputs import StreamChunk
from quantgate_engine.request import AbortCause, Request


class DeliveryState(Enum):
    """SILENT: nothing came yet; STREAMING: tokens have come; ENDED: the reader has seen the end; CLOSED: it left."""

    SILENT = "silent"
    STREAMING = "streaming"
    ENDED = "ended"
    CLOSED = "closed"


class Delivery:
    """One reader's queue, of at most `limit` chunks (None: any number). Used on the event loop's thread only.

    `request` is the one whose chunks it takes, from the moment at which the engine has taken that in.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.request: Request | None = None
        self.state = DeliveryState.SILENT
        self._limit = limit
        self._overflowed = False
        self._chunks: asyncio.Queue[StreamChunk] = asyncio.Queue()

    def put(self, chunk: StreamChunk) -> bool:
        """False where the reader is so far behind that the chunk finds no room: its request is to be given up.

        From then on nothing but the end gets through, and it says why, so that no reader takes what it has for all
        there was.
        """
        if chunk.end is None and self._limit is not None and self._chunks.qsize() >= self._limit:
            self._overflowed = True
        if not self._overflowed:
            self._chunks.put_nowait(chunk)
        elif chunk.end is not None:
            end = replace(chunk.end, status="aborted", finish_reason=None, abort_cause=AbortCause.BACKPRESSURE.value)
            self._chunks.put_nowait(StreamChunk(end=end))
        return not self._overflowed

    async def get(self) -> StreamChunk:
        chunk = await self._chunks.get()
        self.state = DeliveryState.STREAMING if chunk.end is None else DeliveryState.ENDED
        return chunk

    def close(self) -> bool:
        """The reader goes; true where it goes before the end, so that its request is to be given up."""
        left_early = self.state is not DeliveryState.ENDED
        if left_early:
            self.state = DeliveryState.CLOSED
        return left_early
