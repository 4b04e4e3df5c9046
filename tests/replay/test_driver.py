"""The driver against a target whose every delay is known."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replay.plans import MS, answers, drive, planned, steady_plan

from quantgate.replay.driver import Driver, sessions
from quantgate.replay.observation import RequestObservation
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.base import RequestEnd
from quantgate.targets.scripted import ScriptedAnswer, ScriptedTarget
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import VirtualClock

Seen = dict[str, RequestObservation]


def replay(
    script: Callable[[PlannedRequest], ScriptedAnswer],
    *requests: PlannedRequest,
    slots: int = 8,
    timeout_ns: int | None = None,
    check: Callable[[ScriptedTarget], None] = lambda target: None,
) -> Seen:
    async def main(clock: VirtualClock) -> Seen:
        target = ScriptedTarget(script, clock, slots=slots)
        seen = await drive(target, clock, requests, timeout_ns)
        assert target.open_requests == set()
        check(target)
        return seen

    return run_in_virtual_time(main)


def test_each_token_is_stamped_when_it_reaches_the_driver() -> None:
    seen = replay(answers(30, 10, 20), planned("a", at_ms=5))["a"]
    assert (seen.scheduled_ns, seen.sent_ns) == (5 * MS, 5 * MS)
    assert seen.token_ids == [1, 2, 3]
    assert seen.token_times_ns == [35 * MS, 45 * MS, 65 * MS]
    assert seen.ended_ns == 65 * MS
    assert (seen.end.status, seen.end.finish_reason) == ("finished", "length")


def test_sending_never_waits_for_answers() -> None:
    seen = replay(answers(500), *steady_plan(50, every_ms=10).requests, slots=1)
    assert [seen[f"r{i:03d}"].sent_ns for i in range(50)] == [i * 10 * MS for i in range(50)]


def test_time_to_first_token_under_overload_is_the_analytic_queue() -> None:
    """200 requests at 10 a second, one slot, 500 ms each: request i waits for i services less i gaps."""
    seen = replay(answers(500), *steady_plan(200, every_ms=100).requests, slots=1)
    ttft_ms = [(seen[f"r{i:03d}"].token_times_ns[0] - seen[f"r{i:03d}"].scheduled_ns) / MS for i in range(200)]
    assert ttft_ms == [500 + 400 * i for i in range(200)]


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=30), st.integers(1, 3))
def test_requests_leave_on_time_whatever_their_schedule(times_us: list[int], slots: int) -> None:
    requests = [PlannedRequest(f"r{i}", us * 1000, (1,), 3) for i, us in enumerate(sorted(times_us))]
    seen = replay(answers(7, 3), *requests, slots=slots)
    assert {key: observation.sent_ns for key, observation in seen.items()} == {
        request.request_id: request.scheduled_ns for request in requests
    }


def test_a_stalled_driver_shows_as_lag_and_does_not_shift_what_follows() -> None:
    async def main(clock: VirtualClock) -> Seen:
        target = ScriptedTarget(answers(1), clock, slots=8)
        asyncio.get_running_loop().call_at(0.005, clock.advance_ns, 20 * MS)
        return await drive(target, clock, steady_plan(5, every_ms=10).requests)

    seen = run_in_virtual_time(main)
    lags = [seen[f"r{i:03d}"].sent_ns - seen[f"r{i:03d}"].scheduled_ns for i in range(5)]
    assert lags == [0, 15 * MS, 5 * MS, 0, 0]


def test_later_turns_are_scheduled_from_the_answer_before() -> None:
    turns = [
        planned("t1", at_ms=10, session_id="s", turn=1),
        planned("t2", at_ms=11, session_id="s", turn=2, think_time_ns=100 * MS),
        planned("t3", at_ms=12, session_id="s", turn=3, think_time_ns=7 * MS),
    ]
    seen = replay(answers(50, 10), planned("alone", at_ms=12), *reversed(turns))
    assert seen["alone"].scheduled_ns == 12 * MS
    assert [seen[key].scheduled_ns for key in ("t1", "t2", "t3")] == [10 * MS, 170 * MS, 237 * MS]
    assert [seen[key].sent_ns for key in ("t1", "t2", "t3")] == [10 * MS, 170 * MS, 237 * MS]


def test_sessions_and_request_ids_of_the_same_name_do_not_mix() -> None:
    grouped = sessions([planned("x"), planned("y", session_id="x", turn=2), planned("z", session_id="x", turn=1)])
    assert [[request.request_id for request in turns] for turns in grouped] == [["x"], ["z", "y"]]


def test_a_client_that_leaves_closes_the_stream_and_frees_the_slot() -> None:
    seen = replay(
        answers(10, 10, 10, 10),
        planned("leaves", output_tokens=4, disconnect_after_tokens=2),
        planned("next", output_tokens=4),
        slots=1,
    )
    assert seen["leaves"].token_ids == [1, 2]
    assert (seen["leaves"].end.status, seen["leaves"].end.abort_cause) == ("aborted", "disconnect")
    assert seen["leaves"].ended_ns == 20 * MS
    assert seen["next"].token_times_ns[0] == 30 * MS


@pytest.mark.parametrize("tokens", [4, 9])
def test_leaving_after_the_last_token_is_no_disconnect(tokens: int) -> None:
    seen = replay(answers(10, 10, 10, 10), planned("a", output_tokens=4, disconnect_after_tokens=tokens))
    assert seen["a"].end.status == "finished"


def test_one_request_that_breaks_stops_no_other() -> None:
    def script(request: PlannedRequest) -> ScriptedAnswer:
        error = ValueError("bad weights") if request.request_id == "r001" else None
        return ScriptedAnswer((10 * MS,), error=error)

    seen = replay(script, *steady_plan(4, every_ms=1).requests)
    assert seen["r001"].end == RequestEnd("failed", abort_cause="error", error="ValueError: bad weights")
    assert seen["r001"].token_ids == [1]
    assert [seen[key].end.status for key in ("r000", "r002", "r003")] == ["finished"] * 3


def test_rejections_are_passed_on_as_the_target_tells_them() -> None:
    seen = replay(lambda request: ScriptedAnswer((), end=RequestEnd("rejected", error="too long")), planned("a"))
    assert (seen["a"].end.status, seen["a"].end.error, seen["a"].token_ids) == ("rejected", "too long", [])


def test_a_timeout_ends_the_wait_and_frees_the_slot() -> None:
    slow = {"slow": 500, "quick": 10}
    seen = replay(
        lambda request: ScriptedAnswer((slow[request.request_id] * MS,)),
        planned("slow"),
        planned("quick", at_ms=50),
        slots=1,
        timeout_ns=100 * MS,
    )
    assert (seen["slow"].end.status, seen["slow"].end.abort_cause) == ("aborted", "timeout")
    assert seen["slow"].ended_ns == 100 * MS
    assert seen["quick"].end.status == "finished"
    assert seen["quick"].token_times_ns == [110 * MS]


def test_a_targets_own_timeout_error_is_a_failure_of_the_target() -> None:
    seen = replay(lambda request: ScriptedAnswer((), error=TimeoutError("socket")), planned("a"), timeout_ns=1000 * MS)
    assert (seen["a"].end.status, seen["a"].end.error) == ("failed", "TimeoutError: socket")


def test_cancelling_closes_what_is_open_and_keeps_what_had_ended() -> None:
    async def main(clock: VirtualClock) -> list[str]:
        target = ScriptedTarget(answers(50), clock, slots=8)
        ended: list[RequestObservation] = []
        replaying = asyncio.create_task(
            Driver(target, clock, ended.append).replay(steady_plan(10, every_ms=20).requests, anchor_ns=0)
        )
        await asyncio.sleep(0.1)
        replaying.cancel()
        await expect_cancelled(replaying)
        assert target.open_requests == set()
        return [observation.request.request_id for observation in ended]

    assert run_in_virtual_time(main) == ["r000", "r001", "r002"]


async def expect_cancelled(task: Awaitable[object]) -> None:
    with pytest.raises(asyncio.CancelledError):
        await task
