"""Replays a plan over the arms of a run, one cell at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby

from quantgate.replay.arms import ReplayArm
from quantgate.replay.closed_loop import ClosedLoop
from quantgate.replay.driver import Driver
from quantgate.replay.garbage import only_new_garbage
from quantgate.replay.history import History
from quantgate.replay.hooks import ReplayHooks
from quantgate.replay.interleave import Cell, interleave, interleave_whole_passes
from quantgate.replay.load_processes.crew import LoadCrew
from quantgate.replay.observation import RequestObservation
from quantgate.replay.progress import ReplayProgress
from quantgate.replay.replay_log import CellResult, ReplayLog
from quantgate.replay.rows import request_table, step_table
from quantgate.targets.base import TargetGoneError
from quantgate.workload.plan import PlannedRequest, ReplayPlan
from quantgate_engine.clock import Clock

__all__ = ["ReplayHooks", "ReplayOptions", "run_replay"]

# Time between taking a cell's anchor and its first deadline, so that setting up the tasks makes no request late.
_LEAD_NS = 20_000_000


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """passes: how often each arm replays the whole plan; warmup_requests: sent first to each target and not logged.

    history: makes the later turns of sessions (None: as planned). exclusive: only one arm can be up, so that whole
    passes take turns instead of blocks; each arm's target is started and warmed up for its turn and stopped after it.
    closed_loop: clients that send each block in place of its schedule. load_processes: how many send it; more than one
    need arms with a recipe, an open loop and recorded history.
    """

    passes: int = 1
    warmup_requests: int = 4
    request_timeout_seconds: float | None = None
    exclusive: bool = False
    history: History | None = None
    closed_loop: ClosedLoop | None = None
    load_processes: int = 1


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

    `origin_ns` is the run's start on `clock`: times in the log count from it. When cancelled, and when a target is gone
    (TargetGoneError), what ended so far is in the log before the exception goes on.
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
        self._exclusive = options.exclusive
        order = interleave_whole_passes if options.exclusive else interleave
        self._cells = order(list(self._targets), plan.num_blocks, options.passes)
        self._warmup = [_lone(request, index) for index, request in enumerate(plan.requests[: options.warmup_requests])]
        timeout = options.request_timeout_seconds
        self._timeout_ns = None if timeout is None else round(timeout * 1e9)
        self._history, self._closed_loop = options.history, options.closed_loop
        self._load_processes = options.load_processes
        self._recipes = {arm.arm_id: arm.recipe for arm in arms}
        self._crews: dict[int, LoadCrew] = {}
        self._log, self._clock, self._origin_ns, self._hooks = log, clock, origin_ns, hooks
        self._started_ns = clock.now_ns()
        self._requests_done = 0
        self._requests_total = options.passes * len(self._targets) * len(plan.requests)

    async def run(self) -> None:
        await (self._run_one_arm_at_a_time() if self._exclusive else self._run_side_by_side())

    async def _run_side_by_side(self) -> None:
        # An arm whose target another arm has as well (the A/A arm) needs no start of its own.
        first_arms: dict[int, str] = {}
        for arm_id, target in self._targets.items():
            first_arms.setdefault(id(target), arm_id)
        async with AsyncExitStack() as stack:
            for arm_id in first_arms.values():
                await self._start(arm_id, stack)
            for arm_id in first_arms.values():
                await self._warm_up(arm_id)
            self._started_ns = self._clock.now_ns()
            for cell in self._cells:
                await self._run_cell(cell)

    async def _run_one_arm_at_a_time(self) -> None:
        for arm_id, cells in groupby(self._cells, key=lambda cell: cell.arm_id):
            async with AsyncExitStack() as stack:
                await self._start(arm_id, stack)
                await self._warm_up(arm_id)
                for cell in cells:
                    await self._run_cell(cell)

    async def _start(self, arm_id: str, stack: AsyncExitStack) -> None:
        """Brings the arm up and starts its target; `stack` will stop the target."""
        if self._hooks.bring_up is not None:
            await self._hooks.bring_up(arm_id)
        target = self._targets[arm_id]
        stack.push_async_callback(target.stop)
        await target.start()
        recipe = self._recipes[arm_id]
        if self._load_processes > 1 and recipe is not None:
            # By target and not by arm, as what is started: the A/A arm has the baseline's.
            crew = self._crews[id(target)] = LoadCrew(recipe, self._load_processes, self._timeout_ns)
            stack.push_async_callback(crew.stop)
            await crew.start()

    async def _warm_up(self, arm_id: str) -> None:
        ignored: list[RequestObservation] = []
        target = self._targets[arm_id]
        driver = Driver(target, self._clock, ignored.append, self._timeout_ns)
        async with self._with_last_words(arm_id):
            await driver.replay(self._warmup, self._clock.now_ns())
        target.take_steps()

    async def _run_cell(self, cell: Cell) -> None:
        if not self._blocks[cell.block_index]:
            return
        if self._hooks.before_cell is not None:
            await self._hooks.before_cell(cell)
        async with self._with_last_words(cell.arm_id), self._watched(cell):
            with only_new_garbage() as note_kept:
                await self._replay_cell(cell, note_kept)
        self._report(cell.arm_id)

    async def _replay_cell(self, cell: Cell, note_kept: Callable[[], None]) -> None:
        requests, target = self._blocks[cell.block_index], self._targets[cell.arm_id]
        observations: list[RequestObservation] = []

        def on_ended(observation: RequestObservation) -> None:
            observations.append(observation)
            note_kept()
            self._requests_done += 1
            self._report(cell.arm_id)

        plan_start_ns = min(request.scheduled_ns for request in requests)
        crew = self._crews.get(id(target))
        if crew is not None:
            await crew.prepare(requests)
        driver_cpu_ns = None
        cpu_before_ns = self._thread_cpu_ns()
        anchor_ns = self._clock.now_ns() + _LEAD_NS
        try:
            if crew is not None:
                driver_cpu_ns = await crew.replay(anchor_ns - plan_start_ns, on_ended)
            else:
                driver = Driver(target, self._clock, on_ended, self._timeout_ns, self._history)
                await driver.replay(requests, anchor_ns - plan_start_ns, self._closed_loop)
        finally:
            cpu_after_ns = self._thread_cpu_ns()
            if crew is None and cpu_before_ns is not None and cpu_after_ns is not None:
                driver_cpu_ns = cpu_after_ns - cpu_before_ns
            result = CellResult(
                cell=cell,
                anchor_ns=anchor_ns - self._origin_ns,
                plan_start_ns=plan_start_ns,
                requests_intended=len(requests),
                wall_ns=self._clock.now_ns() - anchor_ns,
                driver_cpu_ns=driver_cpu_ns,
                requests=request_table(cell, observations, self._origin_ns, target.decode_text),
                steps=step_table(cell, target.take_steps(), self._origin_ns),
            )
            self._log.cells.append(result)
            if self._hooks.on_cell is not None:
                self._hooks.on_cell(result)

    def _watched(self, cell: Cell) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._hooks.watch_cell is None else self._hooks.watch_cell(cell)

    @asynccontextmanager
    async def _with_last_words(self, arm_id: str) -> AsyncIterator[None]:
        """Adds to the error of a target that is gone what is known of its server's death."""
        try:
            yield
        except TargetGoneError as gone:
            last_words = await self._hooks.last_words(arm_id) if self._hooks.last_words is not None else None
            if last_words is None:
                raise
            raise TargetGoneError(f"{gone} {last_words}") from gone

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
        disconnect_after_ns=None,
        read_tokens_per_s=None,
    )
