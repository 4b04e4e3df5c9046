"""Keeps the number of requests in flight within a bound, whoever asks for how many."""

from __future__ import annotations

import asyncio
from typing import Any

from quantgate.capabilities.server_calls import ServerCalls
from quantgate.targets.openai.whole_answer import MOST_BYTES


class BoundedCalls:
    """An open endpoint that answers at most `limit` calls at a time; the others wait for their turn."""

    def __init__(self, calls: ServerCalls, limit: int) -> None:
        self._calls = calls
        self._turn = asyncio.Semaphore(limit)

    async def get_json(self, path: str) -> Any:
        async with self._turn:
            return await self._calls.get_json(path)

    async def get_text(self, path: str) -> str:
        async with self._turn:
            return await self._calls.get_text(path)

    async def post_json(self, path: str, body: Any) -> Any:
        async with self._turn:
            return await self._calls.post_json(path, body)

    async def post_bytes(self, path: str, body: Any, most_bytes: int = MOST_BYTES) -> bytes:
        async with self._turn:
            return await self._calls.post_bytes(path, body, most_bytes)
