"""The replay of a run: every arm under the plan in turn, tables written after each cell."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from quantgate.arms.config import OpenAIArmConfig
from quantgate.replay.closed_loop import load_words
from quantgate.replay.degraded import degraded_notes
from quantgate.replay.fidelity import certify
from quantgate.replay.history import History
from quantgate.replay.interleave import Cell
from quantgate.replay.prefix_sharing import prefix_sharing
from quantgate.replay.progress import ReplayProgress
from quantgate.replay.replay_log import CellResult, ReplayLog
from quantgate.replay.run_replay import ReplayHooks, ReplayOptions, run_replay
from quantgate.replay.slow_readers import slow_reader_notes
from quantgate.run.arms import OpenedArms
from quantgate.run.workload_phase import closed_loop_of, history_of
from quantgate.server_metrics.recorder import Fetch, ServerMetricsRecorder
from quantgate.store.manifest import FidelityCertificate
from quantgate.store.run_folder import RunFolder
from quantgate.suite import WorkloadConfig
from quantgate.targets.openai.endpoint import Endpoint
from quantgate.workload.plan import ReplayPlan


@dataclass(frozen=True, slots=True)
class Replayed:
    """The whole log, and what is to be noted of the arms: requests that were cut, metrics that could not be read."""

    log: ReplayLog
    notes: dict[str, list[str]]


def replay_arms(
    plan: ReplayPlan,
    arms: OpenedArms,
    workload: WorkloadConfig,
    folder: RunFolder,
    *,
    on_progress: Callable[[ReplayProgress], None],
) -> Replayed:
    """When interrupted, what ended so far is in the folder's tables before the interrupt goes on."""
    return arms.runner.run(_replay(plan, arms, workload, folder, on_progress, history_of(workload, arms, plan.seed)))


def certificates(
    log: ReplayLog, arms: OpenedArms, plan: ReplayPlan, workload: WorkloadConfig
) -> list[FidelityCertificate]:
    """Delivered against intended load, arm by arm."""
    return [
        certify(
            arm.arm_id,
            log.of_arm(arm.arm_id),
            requests_intended=workload.passes * len(plan.requests),
            lag_limit_ms=workload.lag_limit_ms,
            load=load_words(closed_loop_of(workload)),
            sharing=prefix_sharing(
                log.of_arm(arm.arm_id), plan.requests, arms.arms[arms.owner_of(arm.arm_id)].prefix_cache
            ),
            transforms=plan.transforms,
        )
        for arm in arms.replay_arms
    ]


async def _replay(
    plan: ReplayPlan,
    arms: OpenedArms,
    workload: WorkloadConfig,
    folder: RunFolder,
    on_progress: Callable[[ReplayProgress], None],
    history: History | None,
) -> Replayed:
    log, origin_ns, servers = ReplayLog(), arms.clock.now_ns(), arms.host.servers
    closed_loop = closed_loop_of(workload)

    async def bring_up(arm_id: str) -> None:
        if arm_id in servers:
            await arms.host.bring_up(arm_id)

    async def before_cell(cell: Cell) -> None:
        if cell.arm_id in servers:
            servers[cell.arm_id].sample_memory()
            await servers[cell.arm_id].reset_prefix_cache()

    async def last_words(arm_id: str) -> str | None:
        return await servers[arm_id].last_words() if arm_id in servers else None

    async with AsyncExitStack() as stack:
        metrics = ServerMetricsRecorder(await _scrapable(arms, stack), clock=arms.clock, origin_ns=origin_ns)

        @asynccontextmanager
        async def watch_cell(cell: Cell) -> AsyncIterator[None]:
            turn = arms.arms[arms.owner_of(cell.arm_id)].turn
            async with nullcontext() if turn is None else turn(), metrics.watch_cell(cell):
                yield

        def write_tables(_: CellResult) -> None:
            folder.write_table("requests", log.requests())
            folder.write_table("steps", log.steps())

        try:
            await run_replay(
                plan,
                arms.replay_arms,
                log,
                clock=arms.clock,
                origin_ns=origin_ns,
                options=ReplayOptions(
                    passes=workload.passes,
                    request_timeout_seconds=workload.request_timeout_s,
                    exclusive=arms.host.exclusive,
                    history=history,
                    closed_loop=closed_loop,
                    load_processes=workload.load_processes,
                ),
                hooks=ReplayHooks(
                    on_progress=on_progress,
                    on_cell=write_tables,
                    thread_cpu_ns=time.thread_time_ns,
                    bring_up=bring_up,
                    before_cell=before_cell,
                    watch_cell=watch_cell,
                    last_words=last_words,
                ),
            )
        finally:
            if servers:
                folder.write_table("server_metrics", metrics.table())
        notes: dict[str, list[str]] = {
            arm.arm_id: [] if closed_loop is None else [closed_loop.note] for arm in arms.replay_arms
        }
        requests = log.requests()
        for arm_id, note in (
            *degraded_notes(requests).items(),
            *slow_reader_notes(requests).items(),
            *metrics.notes().items(),
        ):
            notes.setdefault(arm_id, []).append(note)
        return Replayed(log, notes)


async def _scrapable(arms: OpenedArms, stack: AsyncExitStack) -> dict[str, Fetch]:
    """How to read the metrics of each arm whose server has some; the connections are closed with `stack`."""
    fetch: dict[str, Fetch] = {}
    for arm in arms.replay_arms:
        opened = arms.arms[arms.owner_of(arm.arm_id)]
        server = arms.host.servers.get(arm.arm_id)
        if server is None or not isinstance(opened.config, OpenAIArmConfig) or server.launch.metrics_path is None:
            continue
        endpoint = await stack.enter_async_context(Endpoint(opened.config))
        fetch[arm.arm_id] = partial(endpoint.get_text, server.launch.metrics_path)
    return fetch
