"""A replay whose arms have servers: who is up when, what is asked before and around a cell, and what a death leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.replay.plans import MS, answers, steady_plan

from quantgate.replay.arms import ReplayArm, with_aa_arm
from quantgate.replay.fidelity import certify
from quantgate.replay.hooks import ReplayHooks
from quantgate.replay.interleave import Cell
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import ReplayOptions, run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.base import TargetGoneError, TokenEvent
from quantgate.targets.scripted import ScriptedTarget
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import VirtualClock


class RecordedTarget(ScriptedTarget):
    """Notes when it is started, asked and stopped."""

    def __init__(self, clock: VirtualClock, arm_id: str, events: list[str]) -> None:
        super().__init__(answers(10), clock, slots=8, arm_id=arm_id)
        self._id, self._events = arm_id, events

    async def start(self) -> None:
        self._events.append(f"start {self._id}")

    async def stop(self) -> None:
        self._events.append(f"stop {self._id}")

    async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
        self._events.append(f"{self._id} serves {request.request_id}")
        async for event in super().submit(request):
            yield event


def recording_hooks(events: list[str]) -> ReplayHooks:
    async def bring_up(arm_id: str) -> None:
        events.append(f"up {arm_id}")

    async def before_cell(cell: Cell) -> None:
        events.append(f"empty {cell.arm_id}")

    @asynccontextmanager
    async def watch_cell(cell: Cell) -> AsyncIterator[None]:
        events.append(f"watch {cell.arm_id} {cell.pass_index}.{cell.block_index}")
        yield
        events.append(f"seen {cell.arm_id}")

    return ReplayHooks(bring_up=bring_up, before_cell=before_cell, watch_cell=watch_cell)


def turns(*, passes: int, blocks: int, exclusive: bool, warmup: int, requests: int = 2, aa: bool = False) -> list[str]:
    events: list[str] = []

    async def main(clock: VirtualClock) -> None:
        arms: tuple[ReplayArm, ...] = (
            ReplayArm("a", "baseline", RecordedTarget(clock, "a", events)),
            ReplayArm("b", "candidate", RecordedTarget(clock, "b", events)),
        )
        await run_replay(
            steady_plan(requests, every_ms=100, blocks=blocks),
            with_aa_arm(arms) if aa else arms,
            ReplayLog(),
            clock=clock,
            origin_ns=0,
            options=ReplayOptions(passes=passes, warmup_requests=warmup, exclusive=exclusive),
            hooks=recording_hooks(events),
        )

    run_in_virtual_time(main)
    return events


def test_side_by_side_every_arm_is_up_and_warm_before_the_first_cell() -> None:
    assert turns(passes=1, blocks=1, exclusive=False, warmup=1, requests=1, aa=True) == [
        "up a", "start a", "up b", "start b", "a serves warm-up-0", "b serves warm-up-0",
        "empty a", "watch a 0.0", "a serves r000", "seen a",
        "empty b", "watch b 0.0", "b serves r000", "seen b",
        "empty a-aa", "watch a-aa 0.0", "a serves r000", "seen a-aa",
        "stop b", "stop a",
    ]  # fmt: skip


def test_one_at_a_time_whole_passes_alternate_and_each_start_is_warmed_up() -> None:
    def cell(arm: str, number: str, request: str) -> list[str]:
        return [f"empty {arm}", f"watch {arm} {number}", f"{arm} serves {request}", f"seen {arm}"]

    assert turns(passes=2, blocks=2, exclusive=True, warmup=1) == [
        "up a", "start a", "a serves warm-up-0", *cell("a", "0.0", "r000"), *cell("a", "0.1", "r001"), "stop a",
        # b ends the first pass and begins the second: it stays up in between.
        "up b", "start b", "b serves warm-up-0", *cell("b", "0.0", "r000"), *cell("b", "0.1", "r001"),
        *cell("b", "1.0", "r000"), *cell("b", "1.1", "r001"), "stop b",
        "up a", "start a", "a serves warm-up-0", *cell("a", "1.0", "r000"), *cell("a", "1.1", "r001"), "stop a",
    ]  # fmt: skip


def test_one_at_a_time_the_aa_arm_has_a_start_of_its_own() -> None:
    starts = [event for event in turns(passes=1, blocks=1, exclusive=True, warmup=0, aa=True) if event.startswith("up")]
    assert starts == ["up a", "up b", "up a-aa"]


class DyingTarget(ScriptedTarget):
    """Its server dies when it is asked for the third request."""

    async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
        if request.request_id == "r002":
            raise TargetGoneError("http://int4:8000: the server is gone.")
        async for event in super().submit(request):
            yield event


def death(last_words: str | None, seen: Callable[[str], None] = lambda _: None) -> tuple[ReplayLog, list[str], str]:
    """A replay whose candidate dies; returns the log, what was handed over, and the error's text."""
    log, handed_over = ReplayLog(), []

    async def tell(arm_id: str) -> str | None:
        seen(arm_id)
        return last_words

    @asynccontextmanager
    async def watch_cell(cell: Cell) -> AsyncIterator[None]:
        try:
            yield
        finally:
            seen(f"left {cell.arm_id}")

    async def main(clock: VirtualClock) -> str:
        arms = (
            ReplayArm("fp16", "baseline", ScriptedTarget(answers(50), clock, slots=8)),
            ReplayArm("int4", "candidate", DyingTarget(answers(50), clock, slots=8)),
        )
        hooks = ReplayHooks(
            on_cell=lambda result: handed_over.append(result.cell.arm_id), last_words=tell, watch_cell=watch_cell
        )
        with pytest.raises(TargetGoneError) as caught:
            await run_replay(
                steady_plan(4, every_ms=100),
                arms,
                log,
                clock=clock,
                origin_ns=0,
                options=ReplayOptions(warmup_requests=0),
                hooks=hooks,
            )
        assert isinstance(arms[1].target, ScriptedTarget)
        assert arms[1].target.open_requests == set()
        return str(caught.value)

    return log, handed_over, run_in_virtual_time(main)


def test_a_server_that_dies_leaves_the_rows_that_there_are() -> None:
    log, handed_over, message = death(None)
    assert message == "http://int4:8000: the server is gone."
    assert handed_over == ["fp16", "int4"]
    table = log.requests()
    assert table.column("arm_id").to_pylist() == ["fp16"] * 4 + ["int4"] * 2
    assert table.column("request_id").to_pylist()[4:] == ["r000", "r001"]
    assert log.cells[-1].requests_intended == 4
    assert not certify("int4", log.of_arm("int4"), requests_intended=4).valid


def test_what_is_known_of_the_death_stands_in_the_error() -> None:
    asked: list[str] = []
    _, _, message = death("The server's process has ended (exit code 137).", asked.append)
    assert message == "http://int4:8000: the server is gone. The server's process has ended (exit code 137)."
    assert asked == ["left fp16", "left int4", "int4"]


def test_a_death_in_the_warm_up_is_told_alike() -> None:
    async def tell(_: str) -> str | None:
        return "It ended."

    class DeadTarget(ScriptedTarget):
        async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
            raise TargetGoneError("Nobody is there.")
            yield TokenEvent()

    async def main(clock: VirtualClock) -> None:
        arms = [ReplayArm("a", "baseline", DeadTarget(answers(1), clock, slots=1))]
        await run_replay(
            steady_plan(1, 1), arms, ReplayLog(), clock=clock, origin_ns=0, hooks=ReplayHooks(last_words=tell)
        )

    with pytest.raises(TargetGoneError, match=r"^Nobody is there\. It ended\.$"):
        run_in_virtual_time(main)


def test_what_is_awaited_before_a_cell_makes_none_of_its_requests_late() -> None:
    async def slow(_: Cell) -> None:
        await asyncio.sleep(7)

    @asynccontextmanager
    async def slow_watch(_: Cell) -> AsyncIterator[None]:
        await asyncio.sleep(3)
        yield
        await asyncio.sleep(3)

    async def main(clock: VirtualClock) -> ReplayLog:
        log = ReplayLog()
        arms = [ReplayArm("a", "baseline", ScriptedTarget(answers(5), clock, slots=8))]
        await run_replay(
            steady_plan(4, every_ms=100, blocks=2),
            arms,
            log,
            clock=clock,
            origin_ns=0,
            options=ReplayOptions(warmup_requests=0),
            hooks=ReplayHooks(before_cell=slow, watch_cell=slow_watch),
        )
        return log

    log = run_in_virtual_time(main)
    assert certify("a", log.cells, requests_intended=4).lag_ms_max == 0.0
    # 10 s before each cell, 3 s after it; the cell itself is not longer for them.
    assert [result.anchor_ns // (1000 * MS) for result in log.cells] == [10, 23]
    assert all(result.wall_ns == 105 * MS for result in log.cells)
