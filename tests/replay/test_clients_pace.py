"""Clients that read slowly and clients that leave after a while: what the driver does, and what it counts for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.replay.plans import MS, answers, drive, planned
from tests.replay.request_rows import request_row, request_table
from tests.replay.test_driver import replay

from quantgate.metrics.endless_times import times_or_endless
from quantgate.metrics.registry import pooled_metric, request_metric
from quantgate.metrics.slo_attainment import slo_attainment
from quantgate.metrics.stalls import stalls
from quantgate.replay.interleave import Cell
from quantgate.replay.observation import RequestObservation
from quantgate.replay.rows import request_table as rows_of
from quantgate.replay.slow_readers import slow_reader_notes
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.scripted import ScriptedAnswer
from quantgate.targets.simulated import SimulatedTarget
from quantgate.workload.plan import ReplayPlan
from quantgate_engine.clock import VirtualClock
from quantgate_engine.executor.simulated import StepCosts


def test_a_slow_reader_takes_tokens_at_its_own_pace_and_the_first_one_at_once() -> None:
    seen = replay(answers(30, 10, 10, 10), planned("a", output_tokens=4, read_tokens_per_s=20.0))["a"]
    # 50 ms a token; the scripted target makes the next one only when it is asked for it.
    assert seen.token_times_ns == [30 * MS, 90 * MS, 150 * MS, 210 * MS]
    assert seen.end.status == "finished"


def test_a_slow_reader_finds_what_came_while_it_read() -> None:
    """The simulated engine goes on by itself, as the bundled one does: its tokens wait for their reader."""

    async def main(clock: VirtualClock) -> dict[str, RequestObservation]:
        target = SimulatedTarget(clock, costs=StepCosts(10 * MS, per_prefill_token_ns=0, per_decode_request_ns=0))
        await target.start()
        slow = planned("slow", output_tokens=4, read_tokens_per_s=20.0)
        fast = planned("fast", output_tokens=4, read_tokens_per_s=1e6)
        seen = await drive(target, clock, [slow, fast])
        await target.stop()
        return seen

    seen = run_in_virtual_time(main)
    first_ns = seen["fast"].token_times_ns[0]
    assert seen["fast"].token_times_ns == [first_ns + step * 10 * MS for step in range(4)]
    assert seen["slow"].token_times_ns == [first_ns + step * 50 * MS for step in range(4)]
    assert seen["slow"].end.engine == seen["fast"].end.engine


def test_what_a_slow_reader_needs_to_read_is_no_waiting() -> None:
    slow = planned("slow", output_tokens=4, read_tokens_per_s=20.0)
    seen = replay(answers(30, 10, 10, 10), slow, timeout_ns=65 * MS)["slow"]
    assert (seen.end.status, seen.ended_ns) == ("finished", 260 * MS)
    late = replay(answers(300), slow, timeout_ns=65 * MS)["slow"]
    assert (late.end.abort_cause, late.ended_ns) == ("timeout", 265 * MS)


@pytest.mark.parametrize(("after_ms", "tokens"), [(25, 2), (5, 0)])
def test_a_client_leaves_when_its_time_is_over(after_ms: int, tokens: int) -> None:
    leaves = planned("leaves", at_ms=7, output_tokens=4, disconnect_after_ns=after_ms * MS)
    seen = replay(answers(10, 10, 10, 10), leaves, planned("next", at_ms=8, output_tokens=4), slots=1)
    assert (seen["leaves"].end.status, seen["leaves"].end.abort_cause) == ("aborted", "impatience")
    assert (seen["leaves"].ended_ns, len(seen["leaves"].token_ids)) == ((7 + after_ms) * MS, tokens)
    # Its slot is free at once.
    assert seen["next"].token_times_ns[0] == (7 + after_ms + 10) * MS


def test_an_answer_that_is_there_in_time_is_whole() -> None:
    seen = replay(answers(10, 10, 10), planned("a", disconnect_after_ns=31 * MS))["a"]
    assert seen.end.status == "finished"


@pytest.mark.parametrize(("after_tokens", "after_ms", "ended_ms"), [(1, 25, 10), (3, 25, 25)])
def test_whichever_comes_first_decides(after_tokens: int, after_ms: int, ended_ms: int) -> None:
    asked = planned("a", output_tokens=4, disconnect_after_tokens=after_tokens, disconnect_after_ns=after_ms * MS)
    assert replay(answers(10, 10, 10, 10), asked)["a"].ended_ns == ended_ms * MS


def test_a_slow_reader_may_leave_while_it_reads() -> None:
    asked = planned("a", output_tokens=4, read_tokens_per_s=1.0, disconnect_after_ns=500 * MS)
    seen = replay(answers(10, 10, 10, 10), asked)["a"]
    assert (seen.ended_ns, seen.token_ids, seen.end.abort_cause) == (500 * MS, [1], "impatience")


def test_a_targets_own_timeout_is_no_leaving() -> None:
    asked = planned("a", disconnect_after_ns=500 * MS)
    seen = replay(lambda _: ScriptedAnswer((), error=TimeoutError("socket")), asked)["a"]
    assert (seen.end.status, seen.end.error) == ("failed", "TimeoutError: socket")


def test_the_plans_hash_tells_such_clients_and_is_else_what_it_was() -> None:
    def sha256(**changes: object) -> str:
        return ReplayPlan((planned("a", **changes),), "test", "0" * 64).sha256()

    plain = sha256()
    assert plain == "38445e8ccd4cb4570e99d19695a5d035fd7bb22f051f8b66a4ac2f908cda0906"
    assert len({plain, sha256(disconnect_after_ns=1), sha256(read_tokens_per_s=1.0)}) == 3


LIMITS = {"interactive": {"ttft_ms": 15.0, "tpot_ms": 5.0, "longest_gap_ms": 1.0}}


def test_what_lies_behind_the_first_token_of_a_slow_reader_counts_for_nothing() -> None:
    table = request_table(request_row("slow", read_tokens_per_s=9.0), request_row("other"))
    for name in ("tpot_ms", "e2e_ms", "longest_gap_ms", "time_to_first_answer_ms"):
        slow, other = request_metric(name)(table)
        assert math.isnan(slow) > math.isnan(other), name
    np.testing.assert_array_equal(request_metric("ttft_ms")(table), [11.0, 11.0])
    assert pooled_metric("itl_ms")(table).rows.tolist() == [1, 1]
    assert slo_attainment(table, LIMITS).tolist() == [1.0, 0.0]
    assert stalls(table, LIMITS).tolist() == [0.0, 2.0]


def test_a_slow_reader_without_an_answer_is_unanswered_like_any_other() -> None:
    table = request_table(request_row("a", status="failed", read_tokens_per_s=9.0))
    assert times_or_endless("tpot_ms", table).tolist() == [math.inf]


def test_an_arm_that_clients_give_up_on_does_not_look_better_for_it() -> None:
    left = {"status": "aborted", "finish_reason": None, "abort_cause": "impatience"}
    table = request_table(
        request_row("left", **left),
        request_row("had enough", **left | {"abort_cause": "disconnect"}),
        request_row("read slowly", read_tokens_per_s=9.0, **left),
    )
    np.testing.assert_array_equal(request_metric("failed")(table), [math.nan] * 3)
    np.testing.assert_array_equal(request_metric("e2e_ms")(table), [math.inf, math.nan, math.nan])
    np.testing.assert_array_equal(request_metric("ttft_ms")(table), [11.0] * 3)


def test_the_arm_says_how_many_were_read_slowly() -> None:
    seen = replay(answers(10, 10, 10), planned("a", read_tokens_per_s=50.0), planned("b"))
    table = rows_of(Cell(0, 0, "fp16"), seen.values(), 0, lambda _: "")
    assert [row["read_tokens_per_s"] for row in table.to_pylist()] == [50.0, None]
    assert slow_reader_notes(table) == {
        "fp16": "1 of 2 requests was read slowly by plan (read_tokens_per_s): TTFT counts them; TPOT, gaps between "
        "tokens and E2E, which are their clients' own, do not"
    }
    assert slow_reader_notes(table.slice(1)) == {}
