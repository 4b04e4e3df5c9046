"""Replays a plan over the arms of a run, one cell at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from quantgate.replay.arms import ReplayArm
from quantgate.replay.driver import Driver
from quantgate.replay.interleave import Cell, interleave
from quantgate.replay.observation import RequestObservation
from quantgate.replay.progress import ReplayProgress
from quantgate.replay.replay_log import CellResult, ReplayLog
from quantgate.replay.rows import request_table, step_table
from quantgate.targets.base import Target
from quantgate.workload.plan import PlannedRequest, ReplayPlan
from quantgate_engine.clock import Clock

# Time between taking a cell's anchor and its first deadline, so that setting up the tasks makes no request late.
_LEAD_NS = 20_000_000


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """passes: how often each arm replays the whole plan; warmup_requests: sent first to each target and not logged."""

    passes: int = 1
    warmup_requests: int = 4
    request_timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ReplayHooks:
    """Called in the driver's thread where they are given.

    on_progress: after each request and each cell; on_cell: when a cell's rows are in the log, also for a cell that was
    cut short; thread_cpu_ns: CPU time of the calling thread (`time.thread_time_ns`).
    """

    on_progress: Callable[[ReplayProgress], None] | None = None
    on_cell: Callable[[CellResult], None] | None = None
    thread_cpu_ns: Callable[[], int] | None = None


async def run_replay(
    plan: ReplayPlan,
    arms: Sequence[ReplayArm],
    log: ReplayLog,
    *,
    clock: Clock,
    origin_ns: int,
    options: ReplayOptions | None = None,
    hooks: ReplayHooks | None = None,
) -> None:
    """Fills `log` cell by cell; a cell starts when the one before has drained.

    `origin_ns` is the run's start on `clock`: times in the log count from it. When cancelled, what ended so far is in
    the log before the cancellation goes on.
    """
    replay = _Replay(plan, arms, log, clock, origin_ns, options or ReplayOptions(), hooks or ReplayHooks())
    await replay.run()


class _Replay:
    def __init__(
        self,
        plan: ReplayPlan,
        arms: Sequence[ReplayArm],
        log: ReplayLog,
        clock: Clock,
        origin_ns: int,
        options: ReplayOptions,
        hooks: ReplayHooks,
    ) -> None:
        self._blocks = [plan.block(index) for index in range(plan.num_blocks)]
        self._targets = {arm.arm_id: arm.target for arm in arms}
        self._cells = interleave(list(self._targets), plan.num_blocks, options.passes)
        self._warmup = [_lone(request, index) for index, request in enumerate(plan.requests[: options.warmup_requests])]
        timeout = options.request_timeout_seconds
        self._timeout_ns = None if timeout is None else round(timeout * 1e9)
        self._log, self._clock, self._origin_ns, self._hooks = log, clock, origin_ns, hooks
        self._started_ns = clock.now_ns()
        self._requests_done = 0
        self._requests_total = options.passes * len(self._targets) * len(plan.requests)

    async def run(self) -> None:
        distinct_targets = list({id(target): target for target in self._targets.values()}.values())
        async with AsyncExitStack() as stack:
            for target in distinct_targets:
                stack.push_async_callback(target.stop)
                await target.start()
            for target in distinct_targets:
                await self._warm_up(target)
            self._started_ns = self._clock.now_ns()
            for cell in self._cells:
                await self._run_cell(cell)

    async def _warm_up(self, target: Target) -> None:
        ignored: list[RequestObservation] = []
        await Driver(target, self._clock, ignored.append, self._timeout_ns).replay(self._warmup, self._clock.now_ns())
        target.take_steps()

    async def _run_cell(self, cell: Cell) -> None:
        requests, target = self._blocks[cell.block_index], self._targets[cell.arm_id]
        if not requests:
            return
        observations: list[RequestObservation] = []

        def on_ended(observation: RequestObservation) -> None:
            observations.append(observation)
            self._requests_done += 1
            self._report(cell.arm_id)

        plan_start_ns = min(request.scheduled_ns for request in requests)
        cpu_before_ns = self._thread_cpu_ns()
        anchor_ns = self._clock.now_ns() + _LEAD_NS
        try:
            driver = Driver(target, self._clock, on_ended, self._timeout_ns)
            await driver.replay(requests, anchor_ns - plan_start_ns)
        finally:
            cpu_after_ns = self._thread_cpu_ns()
            result = CellResult(
                cell=cell,
                anchor_ns=anchor_ns - self._origin_ns,
                plan_start_ns=plan_start_ns,
                requests_intended=len(requests),
                wall_ns=self._clock.now_ns() - anchor_ns,
                driver_cpu_ns=None if cpu_before_ns is None or cpu_after_ns is None else cpu_after_ns - cpu_before_ns,
                requests=request_table(cell, observations, self._origin_ns, target.decode_text),
                steps=step_table(cell, target.take_steps(), self._origin_ns),
            )
            self._log.cells.append(result)
            if self._hooks.on_cell is not None:
                self._hooks.on_cell(result)
        self._report(cell.arm_id)

    def _thread_cpu_ns(self) -> int | None:
        return None if self._hooks.thread_cpu_ns is None else self._hooks.thread_cpu_ns()

    def _report(self, arm_id: str) -> None:
        if self._hooks.on_progress is None:
            return
        self._hooks.on_progress(
            ReplayProgress(
                arm_id=arm_id,
                cells_done=len(self._log.cells),
                cells_total=len(self._cells),
                requests_done=self._requests_done,
                requests_total=self._requests_total,
                elapsed_seconds=(self._clock.now_ns() - self._started_ns) / 1e9,
            )
        )


def _lone(request: PlannedRequest, index: int) -> PlannedRequest:
    """The request by itself, at once and to its end: warming up follows no schedule."""
    return replace(
        request,
        request_id=f"warm-up-{index}",
        scheduled_ns=0,
        session_id=None,
        turn=1,
        disconnect_after_tokens=None,
    )
