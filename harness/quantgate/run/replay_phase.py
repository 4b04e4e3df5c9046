"""The replay of a run: every arm under the plan in turn, tables written after each cell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from quantgate.replay.arms import ReplayArm
from quantgate.replay.fidelity import certify
from quantgate.replay.progress import ReplayProgress
from quantgate.replay.replay_log import CellResult, ReplayLog
from quantgate.replay.run_replay import ReplayHooks, ReplayOptions, run_replay
from quantgate.store.manifest import FidelityCertificate
from quantgate.store.run_folder import RunFolder
from quantgate.suite import WorkloadConfig
from quantgate.workload.plan import ReplayPlan
from quantgate_engine.clock import Clock


def replay_arms(
    plan: ReplayPlan,
    arms: Sequence[ReplayArm],
    workload: WorkloadConfig,
    folder: RunFolder,
    *,
    clock: Clock,
    on_progress: Callable[[ReplayProgress], None],
) -> ReplayLog:
    """Returns the whole log. When interrupted, what ended so far is in the folder's tables before it goes on."""
    log = ReplayLog()

    def write_tables(_: CellResult) -> None:
        folder.write_table("requests", log.requests())
        folder.write_table("steps", log.steps())

    asyncio.run(
        run_replay(
            plan,
            arms,
            log,
            clock=clock,
            origin_ns=clock.now_ns(),
            options=ReplayOptions(passes=workload.passes, request_timeout_seconds=workload.request_timeout_s),
            hooks=ReplayHooks(on_progress=on_progress, on_cell=write_tables, thread_cpu_ns=time.thread_time_ns),
        )
    )
    return log


def certificates(
    log: ReplayLog, arms: Sequence[ReplayArm], plan: ReplayPlan, workload: WorkloadConfig
) -> list[FidelityCertificate]:
    """Delivered against intended load, arm by arm."""
    return [
        certify(
            arm.arm_id,
            log.of_arm(arm.arm_id),
            requests_intended=workload.passes * len(plan.requests),
            lag_limit_ms=workload.lag_limit_ms,
        )
        for arm in arms
    ]
