"""The engine's scheduler under a replay in virtual time: exact times from the cost model."""

from __future__ import annotations

import asyncio

import pytest
from tests.replay.plans import MS, drive, planned, steady_plan

from quantgate.replay.arms import ReplayArm
from quantgate.replay.observation import RequestObservation
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.simulated import SimulatedTarget
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.simulated import StepCosts

COSTS = StepCosts(base_ns=1 * MS, per_prefill_token_ns=2 * MS, per_decode_request_ns=5 * MS)
Seen = dict[str, RequestObservation]


def replay(*requests: PlannedRequest, config: EngineConfig | None = None) -> tuple[Seen, SimulatedTarget]:
    async def main(clock: VirtualClock) -> tuple[Seen, SimulatedTarget]:
        target = SimulatedTarget(clock, costs=COSTS, config=config)
        await target.start()
        seen = await drive(target, clock, requests)
        await asyncio.sleep(1)
        assert target.held_blocks == 0
        await target.stop()
        return seen, target

    return run_in_virtual_time(main)


def test_a_lone_request_takes_what_its_steps_cost() -> None:
    seen, target = replay(planned("a", at_ms=7, output_tokens=3))
    # Four prompt tokens: 1 + 4 * 2 ms; then two decode steps of 1 + 5 ms each.
    assert seen["a"].token_times_ns == [16 * MS, 22 * MS, 28 * MS]
    assert seen["a"].end.engine is not None
    assert seen["a"].end.engine.arrived_ns == 7 * MS
    assert seen["a"].end.engine.finished_ns == 28 * MS
    steps = target.take_steps()
    assert [(step.started_ns, step.duration_ns) for step in steps] == [
        (7 * MS, 9 * MS),
        (16 * MS, 6 * MS),
        (22 * MS, 6 * MS),
    ]


def test_a_request_that_comes_during_a_step_arrives_then_and_waits_for_the_next() -> None:
    seen, _ = replay(planned("a", at_ms=0), planned("b", at_ms=4))
    times = seen["b"].end.engine
    assert times is not None
    assert times.arrived_ns == 4 * MS
    assert times.admitted_ns == 9 * MS
    # One step decodes a and prefills b: 1 + 5 + 4 * 2 ms.
    assert seen["b"].token_times_ns[0] == 23 * MS
    assert seen["a"].token_times_ns[1] == 23 * MS


def test_a_disconnect_frees_the_blocks_and_a_refusal_is_told() -> None:
    seen, _ = replay(
        planned("leaves", output_tokens=50, disconnect_after_tokens=2),
        PlannedRequest("huge", 0, tuple(range(3000)), 5),
    )
    assert seen["leaves"].end.abort_cause == "disconnect"
    assert len(seen["leaves"].token_ids) == 2
    assert seen["huge"].end.status == "rejected"
    assert seen["huge"].end.error


def test_step_tokens_add_up_to_the_requests_tokens() -> None:
    async def main(clock: VirtualClock) -> ReplayLog:
        log = ReplayLog()
        target = SimulatedTarget(clock, costs=COSTS)
        plan = steady_plan(30, every_ms=15, blocks=3)
        await run_replay(plan, [ReplayArm("sim", "baseline", target)], log, clock=clock, origin_ns=0)
        return log

    log = run_in_virtual_time(main)
    requests, steps = log.requests(), log.steps()
    assert sum(steps.column("prefill_tokens").to_pylist()) == sum(requests.column("prompt_tokens").to_pylist())
    # Every token but a request's first comes from a decode.
    assert sum(steps.column("decode_tokens").to_pylist()) == sum(requests.column("output_tokens").to_pylist()) - 30
    ends = [step["started_ns"] + step["duration_ns"] for step in steps.to_pylist()]
    assert max(ends) == max(requests.column("ended_ns").to_pylist())
    assert sorted(set(steps.column("block_index").to_pylist())) == [0, 1, 2]


@pytest.mark.parametrize("active", [1, 4])
def test_more_active_requests_shorten_the_queue_as_batching_should(active: int) -> None:
    config = EngineConfig(max_active_requests=active, max_step_tokens=64)
    seen, _ = replay(*(planned(f"r{i}", at_ms=0, output_tokens=2) for i in range(4)), config=config)
    last = max(observation.ended_ns for observation in seen.values())
    # One after another: 4 * (9 + 6) ms; together: 1 + 16 * 2 ms of prefill and 1 + 4 * 5 ms of decode.
    assert last == {1: 60 * MS, 4: 54 * MS}[active]
