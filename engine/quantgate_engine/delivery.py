"""The way of a stream's chunks to its reader: the state of the output, apart from the state of the request."""

from __future__ import annotations

import asyncio
from enum import Enum

from quantgate_engine.outputs import StreamChunk


class DeliveryState(Enum):
    """SILENT: nothing came yet; STREAMING: tokens have come; ENDED: the reader has seen the end; CLOSED: it left."""

    SILENT = "silent"
    STREAMING = "streaming"
    ENDED = "ended"
    CLOSED = "closed"


class Delivery:
    """One reader's queue. Used on the event loop's thread only."""

    def __init__(self) -> None:
        self.state = DeliveryState.SILENT
        self._chunks: asyncio.Queue[StreamChunk] = asyncio.Queue()

    def put(self, chunk: StreamChunk) -> None:
        self._chunks.put_nowait(chunk)

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
