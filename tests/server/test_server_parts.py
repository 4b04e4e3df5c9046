"""Small parts of the server by themselves: merged streams, the gate, and the watch on the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from quantgate_engine.server.api_error import ApiError
from quantgate_engine.server.client_watch import ClientLeftError, unless_client_leaves
from quantgate_engine.server.gate import Gate
from quantgate_engine.server.merge import merged
from quantgate_engine.server.protocol.unsupported import refuse_unsupported


class _Source:
    """Yields `items`, each when its turn in the loop comes, then raises or ends."""

    def __init__(self, items: list[int], error: Exception | None = None) -> None:
        self.taken = 0
        self.closed = False
        self.stream = self._run(items, error)

    async def _run(self, items: list[int], error: Exception | None) -> AsyncGenerator[int, None]:
        try:
            for item in items:
                await asyncio.sleep(0)
                self.taken += 1
                yield item
            if error is not None:
                raise error
            await asyncio.sleep(0)
        finally:
            self.closed = True


def test_merged_streams_give_all_items_each_source_in_its_order() -> None:
    sources = [_Source([1, 2, 3]), _Source([]), _Source([10, 20])]

    async def read() -> list[int]:
        return [item async for item in merged([source.stream for source in sources])]

    items = asyncio.run(read())
    assert [item for item in items if item < 10] == [1, 2, 3]
    assert [item for item in items if item >= 10] == [10, 20]
    assert all(source.closed for source in sources)


def test_a_source_is_not_read_ahead_of_the_reader() -> None:
    source = _Source(list(range(100)))

    async def read() -> None:
        stream = merged([source.stream])
        for _ in range(3):
            await anext(stream)
            for _ in range(20):
                await asyncio.sleep(0)
        assert source.taken <= 4
        await stream.aclose()

    asyncio.run(read())
    assert source.closed


def test_a_source_that_fails_closes_the_others() -> None:
    endless, failing = _Source(list(range(1000))), _Source([1], ValueError("planted"))

    async def read() -> None:
        async for _ in merged([endless.stream, failing.stream]):
            pass

    with pytest.raises(ValueError, match="planted"):
        asyncio.run(read())
    assert endless.closed
    assert endless.taken < 10


def test_the_gate_counts_widths_and_is_empty_when_all_have_left() -> None:
    async def scenario() -> None:
        gate = Gate(4)
        await gate.wait_empty()
        first, second = gate.enter(), gate.enter()
        second.widen(2)
        with pytest.raises(ApiError, match="has 4 requests, and room for 4"):
            gate.enter()
        waiting = asyncio.create_task(gate.wait_empty())
        second.leave()
        second.leave()
        assert gate.inside == 1
        await asyncio.sleep(0)
        assert not waiting.done()
        first.leave()
        await waiting
        gate.draining = True
        with pytest.raises(ApiError, match="shutting down"):
            gate.enter()
        assert gate.inside == 0

    asyncio.run(scenario())


def test_work_is_cancelled_when_the_client_leaves_and_finished_when_it_stays() -> None:
    async def scenario() -> None:
        leaves = asyncio.Event()
        ended: list[str] = []

        async def receive() -> dict[str, Any]:
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def work(result: str) -> str:
            try:
                await asyncio.sleep(0 if result == "quick" else 60)
            finally:
                ended.append(result)
            return result

        assert await unless_client_leaves(receive, work("quick")) == "quick"
        leaves.set()
        with pytest.raises(ClientLeftError):
            await unless_client_leaves(receive, work("slow"))
        assert ended == ["quick", "slow"]

    asyncio.run(scenario())


@pytest.mark.parametrize("fields", [{"tools": None}, {"tools": []}, {"best_of": 1}, {"length_penalty": 1.0}, {}])
def test_fields_that_ask_for_nothing_pass(fields: dict[str, Any]) -> None:
    refuse_unsupported(fields, {})
