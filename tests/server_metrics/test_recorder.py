"""When servers are scraped, on a virtual clock, and what a bad scrape may not do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.replay.plans import answers, steady_plan
from tests.server_metrics import expositions

from quantgate.replay.arms import ReplayArm
from quantgate.replay.hooks import ReplayHooks
from quantgate.replay.interleave import Cell
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import ReplayOptions, run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.server_metrics.recorder import ServerMetricsRecorder
from quantgate.targets.openai.endpoint import EndpointError
from quantgate.targets.scripted import ScriptedTarget
from quantgate_engine.clock import VirtualClock

SECOND = 1_000_000_000
CELL = Cell(0, 0, "int4")


def watch(
    fetch: Callable[[float], Awaitable[str]], *, seconds: float, cells: int = 1, interval: float = 2.0
) -> tuple[ServerMetricsRecorder, float]:
    """Watches cells that take `seconds` each; `fetch` is given the time. Returns the recorder and the time it took."""

    async def main(clock: VirtualClock) -> tuple[ServerMetricsRecorder, float]:
        recorder = ServerMetricsRecorder(
            {"int4": lambda: fetch(clock.now_ns() / SECOND)}, clock=clock, origin_ns=0, interval_seconds=interval
        )
        for _ in range(cells):
            async with recorder.watch_cell(CELL):
                await asyncio.sleep(seconds)
        return recorder, clock.now_ns() / SECOND

    return run_in_virtual_time(main)


def looks(recorder: ServerMetricsRecorder, metric: str) -> list[tuple[str, float, float]]:
    return [
        (row["phase"], row["time_ns"] / SECOND, row["value"])
        for row in recorder.table().to_pylist()
        if row["metric"] == metric
    ]


async def at_once(now: float) -> str:
    return f"# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs {now}\n"


def test_it_looks_before_every_so_often_during_and_after() -> None:
    recorder, seconds = watch(at_once, seconds=7.0)
    assert looks(recorder, "active_requests") == [
        ("before", 0.0, 0.0), ("during", 2.0, 2.0), ("during", 4.0, 4.0), ("during", 6.0, 6.0), ("after", 7.0, 7.0),
    ]  # fmt: skip
    assert seconds == 7.0
    assert recorder.notes() == {}


def test_a_long_cell_is_looked_at_less_often_as_it_goes_on() -> None:
    recorder, _ = watch(at_once, seconds=1000.0, interval=1.0)
    times = [time for phase, time, _ in looks(recorder, "active_requests") if phase == "during"]
    assert times[:3] == [1.0, 2.0, 3.0]
    assert times[119:122] == [120.0, 122.0, 124.0]
    assert len(times) == 120 + 120 + 120 + (1000 - 120 - 240 - 480 - 1) // 8


def test_an_arm_without_metrics_is_not_looked_at() -> None:
    async def main(clock: VirtualClock) -> int:
        recorder = ServerMetricsRecorder({}, clock=clock, origin_ns=0)
        async with recorder.watch_cell(CELL):
            await asyncio.sleep(5)
        return int(recorder.table().num_rows)

    assert run_in_virtual_time(main) == 0


def test_scrapes_that_fail_are_counted_and_told_once() -> None:
    async def sometimes(now: float) -> str:
        if now in (2.0, 4.0):
            raise EndpointError("http://int4:8000/metrics: the server failed (status 500).", "status_5xx", 500)
        if now == 6.0:
            return "<html>"
        return await at_once(now)

    recorder, _ = watch(sometimes, seconds=9.0)
    assert [phase for phase, _, _ in looks(recorder, "active_requests")] == ["before", "during", "after"]
    assert recorder.notes() == {
        "int4": "3 looks at the server's metrics failed, the first with: http://int4:8000/metrics: the server failed "
        "(status 500)."
    }


@pytest.mark.parametrize("status", [401, 404, 501])
def test_a_server_that_gives_no_metrics_is_asked_once(status: int) -> None:
    asked: list[float] = []

    async def none(now: float) -> str:
        asked.append(now)
        raise EndpointError("http://int4:8000/metrics: there is no such path.", "status_4xx", status)

    recorder, _ = watch(none, seconds=9.0, cells=3)
    assert asked == [0.0]
    assert recorder.table().num_rows == 0
    assert recorder.notes() == {
        "int4": "The server's metrics were not read: http://int4:8000/metrics: there is no such path."
    }


def test_a_scrape_that_hangs_holds_up_no_request() -> None:
    async def hangs(now: float) -> str:
        if now > 0:
            await asyncio.sleep(1000)
        return expositions.VLLM

    async def main(clock: VirtualClock) -> tuple[ReplayLog, ServerMetricsRecorder]:
        log = ReplayLog()
        recorder = ServerMetricsRecorder(
            {"a": lambda: hangs(clock.now_ns() / SECOND)}, clock=clock, origin_ns=0, interval_seconds=0.1
        )
        arms = [ReplayArm("a", "baseline", ScriptedTarget(answers(40), clock, slots=8))]
        await run_replay(
            steady_plan(50, every_ms=100),
            arms,
            log,
            clock=clock,
            origin_ns=0,
            options=ReplayOptions(warmup_requests=0),
            hooks=ReplayHooks(watch_cell=recorder.watch_cell),
        )
        return log, recorder

    log, recorder = run_in_virtual_time(main)
    rows = log.requests().to_pylist()
    assert all(row["sent_ns"] == row["scheduled_ns"] for row in rows)
    assert {row["first_token_ns"] - row["scheduled_ns"] for row in rows} == {40_000_000}
    assert "no answer within 2 s" in recorder.notes()["a"]


def test_a_cell_that_breaks_off_keeps_what_was_seen_and_is_not_looked_at_again() -> None:
    async def main(clock: VirtualClock) -> ServerMetricsRecorder:
        recorder = ServerMetricsRecorder(
            {"int4": lambda: at_once(clock.now_ns() / SECOND)}, clock=clock, origin_ns=0, interval_seconds=1.0
        )

        async def broken() -> None:
            async with recorder.watch_cell(CELL):
                await asyncio.sleep(2.5)
                raise RuntimeError("the server died")

        with pytest.raises(RuntimeError, match="the server died"):
            await broken()
        await asyncio.sleep(10)
        assert len(asyncio.all_tasks()) == 1
        return recorder

    recorder = run_in_virtual_time(main)
    assert [(phase, time) for phase, time, _ in looks(recorder, "active_requests")] == [
        ("before", 0.0), ("during", 1.0), ("during", 2.0),
    ]  # fmt: skip


def test_cancelling_a_cell_ends_its_watching() -> None:
    async def main(clock: VirtualClock) -> int:
        recorder = ServerMetricsRecorder(
            {"int4": lambda: at_once(clock.now_ns() / SECOND)}, clock=clock, origin_ns=0, interval_seconds=1.0
        )

        async def watched() -> None:
            async with recorder.watch_cell(CELL):
                await asyncio.sleep(100)

        task = asyncio.create_task(watched())
        await asyncio.sleep(3.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1
        return int(recorder.table().num_rows)

    assert run_in_virtual_time(main) == 4


def test_an_error_of_ours_is_not_taken_for_a_bad_scrape() -> None:
    async def wrong(now: float) -> str:
        if now > 0:
            raise ZeroDivisionError
        return ""

    with pytest.raises(ZeroDivisionError):
        watch(wrong, seconds=5.0)
