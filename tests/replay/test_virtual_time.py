"""The event loop that jumps from timer to timer."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate_engine.clock import VirtualClock


@given(st.lists(st.integers(min_value=1, max_value=10**14), min_size=1, max_size=20))
def test_sleeps_end_at_their_exact_nanosecond_and_in_order(durations_ns: list[int]) -> None:
    woken: list[tuple[int, int]] = []

    async def sleep(duration_ns: int, clock: VirtualClock) -> None:
        await asyncio.sleep(duration_ns / 1e9)
        woken.append((duration_ns, clock.now_ns()))

    async def main(clock: VirtualClock) -> None:
        await asyncio.gather(*(sleep(duration_ns, clock) for duration_ns in durations_ns))

    run_in_virtual_time(main)
    # A float of seconds holds 10^14 ns to within 16 ns; below 10^6 s every nanosecond is exact.
    assert [woke for _, woke in woken] == sorted(woke for _, woke in woken)
    assert all(abs(duration - woke) <= 16 for duration, woke in woken)


def test_time_adds_up_over_sleeps_and_a_busy_loop_is_late() -> None:
    async def main(clock: VirtualClock) -> list[int]:
        times = []
        for _ in range(3):
            await asyncio.sleep(0.1)
            times.append(clock.now_ns())
        timer = asyncio.create_task(asyncio.sleep(0.05))
        await asyncio.sleep(0)
        clock.advance_ns(200_000_000)
        await timer
        return [*times, clock.now_ns()]

    assert run_in_virtual_time(main) == [100_000_000, 200_000_000, 300_000_000, 500_000_000]


def test_a_deadlock_is_an_error_and_no_hang() -> None:
    async def main(clock: VirtualClock) -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="every task waits for another one"):
        run_in_virtual_time(main)
