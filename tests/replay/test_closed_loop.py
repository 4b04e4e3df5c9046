"""The closed loop: never more requests open than clients, and each due when its client is free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replay.plans import MS, answers, planned, steady_plan

from quantgate.replay.arms import ReplayArm
from quantgate.replay.closed_loop import ClosedLoop, load_words
from quantgate.replay.driver import Driver
from quantgate.replay.fidelity import certify
from quantgate.replay.observation import RequestObservation
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import ReplayOptions, run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.base import TargetGoneError
from quantgate.targets.scripted import ScriptedAnswer, ScriptedTarget
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import VirtualClock

Seen = dict[str, RequestObservation]


def replay(
    script: Callable[[PlannedRequest], ScriptedAnswer],
    requests: Sequence[PlannedRequest],
    closed_loop: ClosedLoop,
    *,
    stall_at_ms: int | None = None,
    timeout_ns: int | None = None,
) -> Seen:
    """What was seen of each request, in the order of sending. stall_at_ms: the driver then stands still for 200 ms."""

    async def main(clock: VirtualClock) -> Seen:
        seen: list[RequestObservation] = []
        target = ScriptedTarget(script, clock, slots=1000)
        if stall_at_ms is not None:
            asyncio.get_running_loop().call_at(stall_at_ms / 1000, clock.advance_ns, 200 * MS)
        await Driver(target, clock, seen.append, timeout_ns).replay(requests, 0, closed_loop)
        by_id = {observation.request.request_id: observation for observation in seen}
        return {request_id: by_id[request_id] for request_id in target.served}

    return run_in_virtual_time(main)


def sent_ms(seen: Seen) -> list[float]:
    return [observation.sent_ns / MS for observation in seen.values()]


def test_each_client_sends_its_next_request_when_its_last_has_ended() -> None:
    services_ms = iter([50, 20, 20, 20, 50])
    seen = replay(
        lambda request: ScriptedAnswer((next(services_ms) * MS,)), steady_plan(5, every_ms=1).requests, ClosedLoop(2)
    )
    assert list(seen) == ["r000", "r001", "r002", "r003", "r004"]
    assert sent_ms(seen) == [0, 0, 20, 40, 50]
    assert all(observation.scheduled_ns == observation.sent_ns for observation in seen.values())


def test_the_times_of_the_trace_play_no_part_but_for_the_first() -> None:
    seen = replay(answers(50), [planned(f"r{at}", at_ms=at) for at in (70, 5000, 90_000)], ClosedLoop(1))
    assert sent_ms(seen) == [70, 120, 170]


def test_clients_pause_after_an_answer() -> None:
    """N clients with service time R and pause Z complete N / (R + Z) requests per second: here 4 in 100 ms."""
    seen = replay(answers(60), steady_plan(40, every_ms=0).requests, ClosedLoop(4, think_ns=40 * MS))
    assert sent_ms(seen) == [100 * (number // 4) for number in range(40)]


def test_a_client_stays_with_a_session_and_its_think_times() -> None:
    turns = [planned("s1", session_id="s"), planned("s2", at_ms=9, session_id="s", turn=2, think_time_ns=30 * MS)]
    lone = [planned(f"r{number}", at_ms=1 + number) for number in range(3)]
    seen = replay(answers(50), [turns[0], *lone, turns[1]], ClosedLoop(2))
    assert {key: observation.sent_ns / MS for key, observation in seen.items()} == {
        "s1": 0, "r0": 0, "r1": 50, "s2": 80, "r2": 100,
    }  # fmt: skip


def test_a_client_goes_on_after_a_failure_and_after_giving_up() -> None:
    def script(request: PlannedRequest) -> ScriptedAnswer:
        if request.request_id == "r000":
            return ScriptedAnswer((10 * MS,), error=ValueError("broken"))
        return ScriptedAnswer((500 * MS if request.request_id == "r001" else 10 * MS,))

    seen = replay(script, steady_plan(3, every_ms=0).requests, ClosedLoop(1), timeout_ns=100 * MS)
    assert [observation.end.status for observation in seen.values()] == ["failed", "aborted", "finished"]
    assert sent_ms(seen) == [0, 10, 110]


def test_a_stalled_driver_shows_as_lag() -> None:
    seen = replay(answers(50), steady_plan(2, every_ms=0).requests, ClosedLoop(1, think_ns=20 * MS), stall_at_ms=60)
    second = seen["r001"]
    assert (second.scheduled_ns / MS, second.sent_ns / MS) == (70, 260)


def test_the_death_of_the_target_ends_all_clients() -> None:
    def script(request: PlannedRequest) -> ScriptedAnswer:
        gone = TargetGoneError("it died") if request.request_id == "r002" else None
        return ScriptedAnswer((10 * MS,), error=gone)

    with pytest.raises(TargetGoneError, match="it died"):
        replay(script, steady_plan(9, every_ms=0).requests, ClosedLoop(2))


@given(
    st.lists(st.tuples(st.integers(1, 90), st.integers(0, 3)), min_size=1, max_size=25),
    st.integers(1, 6),
    st.integers(0, 30),
)
def test_no_more_are_open_than_clients_and_no_client_is_idle_while_work_waits(
    units: list[tuple[int, int]], clients: int, think_ms: int
) -> None:
    """units: milliseconds of service, and whether it is a session of further turns."""
    requests = [
        planned(f"{unit}.{turn}", at_ms=unit, session_id=f"s{unit}" if more else None, turn=turn)
        for unit, (_, more) in enumerate(units)
        for turn in range(1, more + 2)
    ]
    seen = replay(
        lambda request: ScriptedAnswer((units[int(request.request_id.split(".")[0])][0] * MS,)),
        requests,
        ClosedLoop(clients, think_ns=think_ms * MS),
    )
    assert seen.keys() == {request.request_id for request in requests}
    edges = sorted([(o.sent_ns, 1) for o in seen.values()] + [(o.ended_ns, -1) for o in seen.values()])
    most = number = 0
    for _, step in edges:
        number += step
        most = max(most, number)
    assert most == min(clients, len(units))
    firsts = [seen[f"{unit}.1"].sent_ns for unit in range(len(units))]
    assert firsts == sorted(firsts)
    ends = sorted(
        max(o.ended_ns for o in seen.values() if o.request.request_id.startswith(f"{unit}."))
        for unit in range(len(units))
    )
    assert firsts[clients:] == [end + think_ms * MS for end in ends[: max(0, len(units) - clients)]]


def test_a_certificate_says_what_kind_of_load_it_was() -> None:
    log = ReplayLog()
    closed_loop = ClosedLoop(2)

    async def main(clock: VirtualClock) -> None:
        arms = [ReplayArm("a", "baseline", ScriptedTarget(answers(100), clock, slots=8))]
        options = ReplayOptions(warmup_requests=0, closed_loop=closed_loop)
        plan = steady_plan(12, every_ms=5000, blocks=2)
        await run_replay(plan, arms, log, clock=clock, origin_ns=0, options=options)

    run_in_virtual_time(main)
    certificate = certify("a", log.of_arm("a"), requests_intended=12, load=load_words(closed_loop))
    assert (certificate.valid, certificate.load) == (True, "closed loop, 2 clients")
    assert (certificate.requests_delivered, certificate.lag_ms_max) == (12, 0.0)
    # Each block's six requests take two clients three answers of 100 ms.
    assert [cell.wall_ns for cell in log.cells] == [300 * MS, 300 * MS]


def test_loads_in_words() -> None:
    assert load_words(None) == "open loop"
    assert load_words(ClosedLoop(1)) == "closed loop, 1 client"
    assert load_words(ClosedLoop(8, think_ns=500 * MS)) == "closed loop, 8 clients that pause 0.5 s after an answer"
