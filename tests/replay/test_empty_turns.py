"""An arm that shares its engine with its A/A twin is scheduled as the arm that has one to itself."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest
from tests.replay.plans import MS, plan_of

from quantgate.replay.arms import ReplayArm, with_aa_arm
from quantgate.replay.hooks import ReplayHooks
from quantgate.replay.interleave import Cell
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.simulated import SimulatedTarget
from quantgate.workload.plan import PlannedRequest, ReplayPlan
from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.simulated import StepCosts
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.router.settings import PoolSettings, SpillSettings
from quantgate_engine.router.simulated import SimulatedRouter
from quantgate_engine.scheduler.admission.settings import AdmissionSettings

# Odd, so that no request arrives at the very moment at which a step ends.
COSTS = StepCosts(base_ns=MS + 7, per_prefill_token_ns=MS // 10, per_decode_request_ns=MS)
ENGINE = EngineConfig(
    max_active_requests=4,
    block_size=8,
    num_kv_blocks=40,
    cache=CacheSettings(prefix_sharing=True, session_seconds=3600.0),
    admission=AdmissionSettings(estimator="past-future"),
)
POOLS = [
    PoolSettings("main", ENGINE, spill=SpillSettings(to="over", held_share=0.5)),
    PoolSettings("over", replace(ENGINE, num_kv_blocks=200)),
]


def conversations() -> ReplayPlan:
    """Three sessions of two turns in each of three blocks; the second turn goes on where the first one ended."""
    requests = []
    for block in range(3):
        for number in range(3):
            first = tuple(range(100 * number, 100 * number + 70))
            common: dict[str, Any] = {"block_index": block, "session_id": f"s{block}-{number}"}
            at_ns = (block * 1000 + number * 20) * MS + number
            requests += [
                PlannedRequest(f"r{block}-{number}-1", at_ns, first, 12, **common),
                PlannedRequest(
                    f"r{block}-{number}-2", at_ns, (*first, *range(30)), 12, turn=2, think_time_ns=50 * MS + 3, **common
                ),
            ]
    return plan_of(*requests)


def replayed(pools: list[PoolSettings], *, aa: bool) -> ReplayLog:
    log = ReplayLog()

    async def main(clock: VirtualClock) -> None:
        targets = {
            arm_id: SimulatedTarget(clock, router=SimulatedRouter(pools, clock=clock, costs=COSTS), arm_id=arm_id)
            for arm_id in ("base", "other")
        }
        arms: tuple[ReplayArm, ...] = (
            ReplayArm("base", "baseline", targets["base"]),
            ReplayArm("other", "candidate", targets["other"]),
        )

        def watch_cell(cell: Cell) -> AbstractAsyncContextManager[None]:
            return targets[cell.arm_id.removesuffix("-aa")].turn()

        await run_replay(
            conversations(),
            with_aa_arm(arms) if aa else arms,
            log,
            clock=clock,
            origin_ns=0,
            hooks=ReplayHooks(watch_cell=watch_cell),
        )

        assert [target.held_blocks for target in targets.values()] == [0, 0]

    run_in_virtual_time(main)
    return log


def scheduling(log: ReplayLog, arm_id: str) -> list[dict[str, Any]]:
    """Every step of the arm, and what each request cost, without what tells turns and arms apart."""
    of_arm = log.of_arm(arm_id)
    left_out = {"arm_id", "step_index", "started_ns"}
    costs = ("request_id", "output_tokens", "cached_prompt_tokens", "preemptions", "kv_peak_blocks")
    steps = [row for cell in of_arm for row in cell.steps.to_pylist()]
    requests = [row for cell in of_arm for row in cell.requests.to_pylist()]
    return [
        *({name: value for name, value in step.items() if name not in left_out} for step in steps),
        *({name: request[name] for name in costs} for request in requests),
    ]


@pytest.mark.parametrize("pools", [POOLS[1:], POOLS], ids=["one engine", "a pool that spills"])
def test_arms_are_scheduled_alike_with_and_without_a_twin(pools: list[PoolSettings]) -> None:
    alone, paired = replayed(pools, aa=False), replayed(pools, aa=True)
    expected = scheduling(alone, "base")
    assert any(row.get("cached_prompt_tokens", 0) > 0 for row in expected)
    assert scheduling(alone, "other") == expected
    for arm_id in ("base", "base-aa", "other"):
        assert scheduling(paired, arm_id) == expected


def test_the_first_step_of_a_turn_finds_an_empty_cache() -> None:
    for cell in replayed(POOLS[1:], aa=True).cells:
        first = cell.steps.to_pylist()[0]
        assert first["kv_cache_used_tokens"] <= first["prefill_tokens"]
