"""Several streams read as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


async def merged(sources: Sequence[AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
    """The items of all sources as they come; each source is asked for its next one only when its last was taken.

    Closing it, or a source that raises, closes all of them.
    """
    waiting = {asyncio.ensure_future(_next_of(source)): source for source in sources}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                items = task.result()
                source = waiting.pop(task)
                if items:
                    waiting[asyncio.ensure_future(_next_of(source))] = source
                    yield items[0]
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for source in sources:
            await source.aclose()


async def _next_of(source: AsyncGenerator[Item, None]) -> list[Item]:
    """The next item; none at the source's end."""
    async for item in source:
        return [item]
    return []
