"""Sessions that go well, are cut short, and go on."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.judging.answered_run import (
    AA,
    CANDIDATE,
    ScriptedJudge,
    answered_run,
    judge_all,
    order_of,
    preferring_baseline,
    store,
)

from quantgate.judging.budget import Budget, Spending
from quantgate.judging.judge_client import JudgeClient
from quantgate.judging.judge_run import prepare
from quantgate.judging.judging_session import JudgingSession, SessionOutcome
from quantgate.judging.pair_verdicts import judged_pairs
from quantgate.judging.rows import spending
from quantgate.judging.summary import summarize
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.store.run_folder import LoadedRun
from quantgate.targets.openai.endpoint import EndpointError
from quantgate_engine.clock import VirtualClock
from quantgate_engine.errors import ConfigurationError

REQUESTS = 10


@pytest.fixture
def run(tmp_path: Path) -> LoadedRun:
    made = answered_run(REQUESTS, preferring_baseline(0.6, REQUESTS, seed=2))
    store(made, tmp_path)
    return made


def test_each_pair_is_asked_in_both_orders_at_temperature_0(run: LoadedRun, tmp_path: Path) -> None:
    judge = ScriptedJudge()
    prepared, outcome, stored = judge_all(run, tmp_path, judge)
    assert len(judge.bodies) == prepared.plan.most.requests == REQUESTS * 2 * 2
    assert set(judge.paths) == {"/v1/chat/completions"}
    assert all(body["temperature"] == 0 and body["model"] == "judge-1" for body in judge.bodies)
    assert {body["max_tokens"] for body in judge.bodies} == {64}
    orders = Counter((row["arm_id"], row["order"]) for row in stored.judgements.to_pylist())
    assert set(orders.values()) == {REQUESTS}
    assert len(orders) == 4
    assert (outcome.left, outcome.stopped) == (0, None)


def test_identical_answers_cost_nothing(tmp_path: Path) -> None:
    run = answered_run(REQUESTS, lambda arm, index: 500, identical_aa=True)
    store(run, tmp_path)
    judge = ScriptedJudge()
    prepared, _, stored = judge_all(run, tmp_path, judge)
    assert prepared.plan.identical == REQUESTS
    assert len(judge.bodies) == 2 * REQUESTS
    aa = [pair for pair in judged_pairs(stored.judgements) if pair.arm_id == AA]
    assert [(pair.preferred, pair.source) for pair in aa] == [("tie", "identical")] * REQUESTS
    summary = summarize(stored, 0.95)
    assert summary is not None
    assert summary.calibration is not None
    assert (summary.calibration.asked, summary.calibration.fit) == (0, True)


def test_a_second_session_pays_only_for_what_is_new(run: LoadedRun, tmp_path: Path) -> None:
    first, second = ScriptedJudge(), ScriptedJudge()
    _, _, stored = judge_all(run, tmp_path, first, order_of(items=4))
    assert len(first.bodies) == 4 * 4
    prepared, _, again = judge_all(stored, tmp_path, second, order_of(items=6))
    assert prepared.plan.judged_before == 8
    assert len(second.bodies) == 2 * 4
    assert spending(again.judgements.to_pylist()).requests == 24
    third = ScriptedJudge()
    judge_all(again, tmp_path, third, order_of(items=6))
    assert third.bodies == []


def test_the_budget_counts_earlier_sessions(run: LoadedRun, tmp_path: Path) -> None:
    _, _, stored = judge_all(run, tmp_path, ScriptedJudge(), order_of(items=4))
    judge = ScriptedJudge()
    _, outcome, again = judge_all(stored, tmp_path, judge, order_of(budget_requests=20))
    assert len(judge.bodies) == 4
    assert spending(again.judgements.to_pylist()).requests == 20
    assert outcome.stopped is not None


def test_unreadable_replies_are_counted_and_not_asked_again(run: LoadedRun, tmp_path: Path) -> None:
    _, _, stored = judge_all(run, tmp_path, ScriptedJudge(reply=lambda question: "Both are fine."))
    summary = summarize(stored, 0.95)
    assert summary is not None
    assert summary.unparsable == 4 * REQUESTS
    assert {arm.undecided for arm in summary.arms} == {REQUESTS}
    again = ScriptedJudge()
    judge_all(stored, tmp_path, again)
    assert again.bodies == []


def test_a_busy_server_is_asked_again_later(run: LoadedRun, tmp_path: Path) -> None:
    """The first call is refused, with 7 seconds to wait; everything else goes through."""

    def fault(call: int) -> EndpointError | None:
        return EndpointError("Too many.", "status_429", 429, retry_after_s=7.0) if call == 1 else None

    judge = ScriptedJudge(fault=fault)
    _, outcome, stored = judge_all(run, tmp_path, judge)
    assert len(judge.bodies) == 4 * REQUESTS + 1
    assert outcome.failures == {"status_429": 1}
    failed = [row for row in stored.judgements.to_pylist() if row["choice"] == "failed"]
    assert [(row["error_kind"], row["prompt_tokens"], row["completion_tokens"]) for row in failed] == [
        ("status_429", 0, 0)
    ]
    assert all(pair.preferred is not None for pair in judged_pairs(stored.judgements))


def test_a_server_that_wants_to_be_left_alone_for_a_day_ends_the_session(run: LoadedRun) -> None:
    busy = EndpointError("Too many.", "status_429", 429, retry_after_s=100_000.0)
    clocks: list[VirtualClock] = []

    async def judge(clock: VirtualClock) -> SessionOutcome:
        clocks.append(clock)
        return await _session(ScriptedJudge(fault=lambda call: busy)).run(prepare(run, order_of()).plan)

    outcome = run_in_virtual_time(judge)
    assert clocks[0].now_ns() == 0
    assert outcome.hopeless
    assert "Too many. It asks to be left alone for 100,000 s (Retry-After), and judging waits at most 60 s" in (
        outcome.last_error
    )


def test_a_wait_is_told_once_for_all_calls_that_share_it(run: LoadedRun) -> None:
    told: list[str] = []
    judge = ScriptedJudge(
        fault=lambda call: EndpointError("Busy.", "status_429", 429, retry_after_s=30.0) if call <= 4 else None
    )
    session = _session(judge, on_wait=told.append)
    outcome = run_in_virtual_time(lambda clock: session.run(prepare(run, order_of()).plan))
    assert outcome.failures == {"status_429": 4}
    assert told == ["waiting 30 s before the next call, as the server asks: Busy."]


def _session(judge: ScriptedJudge, **options: Any) -> JudgingSession:
    return JudgingSession(
        JudgeClient(judge, "judge-1", 64, {}), Budget(1000, 10**7, Spending()), concurrency=4,
        write=lambda rows: None, on_pair=lambda done: None, **options,
    )  # fmt: skip


def test_a_broken_answer_costs_all_that_it_may_have_cost(run: LoadedRun, tmp_path: Path) -> None:
    def fault(call: int) -> EndpointError | None:
        return EndpointError("It broke off.", "early_close") if call == 1 else None

    _, outcome, stored = judge_all(run, tmp_path, ScriptedJudge(fault=fault))
    (failed,) = [row for row in stored.judgements.to_pylist() if row["choice"] == "failed"]
    assert failed["completion_tokens"] == 64
    assert failed["prompt_tokens"] > 256
    undecided = [pair for pair in judged_pairs(stored.judgements) if pair.preferred is None]
    assert len(undecided) == 1
    assert outcome.stopped is None


@pytest.mark.parametrize(("status", "calls"), [(401, 1), (404, 1), (400, 5)])
def test_a_server_that_refuses_every_call_is_left_alone(
    run: LoadedRun, tmp_path: Path, status: int, calls: int
) -> None:
    judge = ScriptedJudge(fault=lambda call: EndpointError("No.", "status_4xx", status))
    prepared = prepare(run, order_of())
    session = JudgingSession(
        JudgeClient(judge, "judge-1", 64, {}), Budget(1000, 10**7, Spending()), concurrency=1,
        write=lambda rows: None, on_pair=lambda done: None,
    )  # fmt: skip
    outcome = run_in_virtual_time(lambda clock: session.run(prepared.plan))
    assert len(judge.bodies) == calls
    assert outcome.stopped == "the judge's calls fail"
    assert outcome.last_error == "No."
    assert outcome.left == len(prepared.plan.pairs) - calls


def test_a_failed_pair_is_asked_again_by_the_next_session(run: LoadedRun, tmp_path: Path) -> None:
    judge_all(run, tmp_path, ScriptedJudge(fault=lambda call: EndpointError("No.", "status_4xx", 401)))
    from quantgate.store.run_folder import load_run

    _, _, stored = judge_all(load_run(tmp_path), tmp_path, ScriptedJudge())
    assert all(pair.preferred is not None for pair in judged_pairs(stored.judgements))


def test_calls_of_a_mistyped_judge_that_failed_bind_the_run_to_nothing(run: LoadedRun, tmp_path: Path) -> None:
    nope = ScriptedJudge(fault=lambda call: EndpointError("No such model.", "status_4xx", 404))
    _, _, stored = judge_all(run, tmp_path, nope, order_of(model="nope"))
    assert {row["judge"] for row in stored.judgements.to_pylist()} == {"nope"}
    _, _, stored = judge_all(stored, tmp_path, ScriptedJudge())
    assert {row["judge"] for row in stored.judgements.to_pylist()} == {"judge-1"}


def test_one_answer_of_another_judge_binds(run: LoadedRun, tmp_path: Path) -> None:
    def fault(call: int) -> EndpointError | None:
        return EndpointError("It broke off.", "early_close") if call > 1 else None

    _, _, stored = judge_all(run, tmp_path, ScriptedJudge(fault=fault), order_of(model="first"))
    with pytest.raises(ConfigurationError, match="was judged by first already"):
        prepare(stored, order_of())


def test_half_a_character_in_a_reply_makes_it_unreadable(run: LoadedRun, tmp_path: Path) -> None:
    judge = ScriptedJudge(reply=lambda question: '{"better": "1", "reason": "\ud83d"}')
    _, _, stored = judge_all(run, tmp_path, judge, order_of(items=1))
    assert {(row["choice"], row["reason"]) for row in stored.judgements.to_pylist()} == {
        ("unparsable", '{"better": "1", "reason": "\ufffd"}')
    }


def test_an_interrupt_keeps_and_charges_what_was_under_way(run: LoadedRun) -> None:
    prepared = prepare(run, order_of())
    budget = Budget(1000, 10**7, Spending())
    written: list[list[Any]] = []
    judge = ScriptedJudge(latency_s=10.0)
    session = JudgingSession(
        JudgeClient(judge, "judge-1", 64, {}), budget, concurrency=4,
        write=lambda rows: written.append(list(rows)), on_pair=lambda done: None,
    )  # fmt: skip

    async def interrupted(clock: VirtualClock) -> None:
        task = asyncio.create_task(session.run(prepared.plan))
        await asyncio.sleep(20.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_in_virtual_time(interrupted)
    rows = written[-1]
    assert len(rows) == len(judge.bodies) == budget.spent.requests
    assert spending(rows) == budget.spent
    assert [row["error_kind"] for row in rows].count("interrupted") == 4
    assert Counter(row["choice"] == "failed" for row in rows)[False] > 0


def test_a_fault_in_an_answer_of_another_shape_is_counted(run: LoadedRun, tmp_path: Path) -> None:
    class Odd(ScriptedJudge):
        async def post_json(self, path: str, body: Any) -> Any:
            self.bodies.append(body)
            return {"object": "list", "data": []}

    _, outcome, stored = judge_all(run, tmp_path, Odd())
    assert set(outcome.failures) == {"malformed_event"}
    assert "no chat completion" in outcome.last_error
    assert spending(stored.judgements.to_pylist()).tokens == 0


def test_an_answer_without_a_choice_that_was_billed_is_charged(run: LoadedRun, tmp_path: Path) -> None:
    class Filtered(ScriptedJudge):
        async def post_json(self, path: str, body: Any) -> Any:
            return {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 0}}

    _, _, stored = judge_all(run, tmp_path, Filtered(), order_of(items=1))
    rows = stored.judgements.to_pylist()
    assert {(row["choice"], row["prompt_tokens"]) for row in rows} == {("unparsable", 7)}


def test_an_answer_with_a_usage_that_cannot_be_read_is_charged_in_full(run: LoadedRun, tmp_path: Path) -> None:
    judge = ScriptedJudge(usage=lambda body, random: {"prompt_tokens": -1, "completion_tokens": 2})
    _, _, stored = judge_all(run, tmp_path, judge, order_of(items=1))
    rows = stored.judgements.to_pylist()
    assert {row["completion_tokens"] for row in rows} == {64}
    assert all(row["choice"] in {"1", "2", "tie"} for row in rows)


EXTRA = {"temperature": None, "reasoning_effort": "low", "max_tokens": None, "max_completion_tokens": 60}


def test_fields_can_be_laid_over_the_request_or_taken_away() -> None:
    judge = ScriptedJudge(reply=lambda question: json.dumps({"better": "tie"}))
    client = JudgeClient(judge, "judge-1", 64, EXTRA)
    run_in_virtual_time(lambda clock: client.ask([{"role": "user", "content": "?"}]))
    assert judge.bodies[0] == {
        "model": "judge-1",
        "messages": [{"role": "user", "content": "?"}],
        "reasoning_effort": "low",
        "max_completion_tokens": 60,
    }


@pytest.mark.parametrize(
    "extra_body", [{"max_tokens": None}, {"max_tokens": 65}, {"max_completion_tokens": 65}, {"max_tokens": "many"}]
)
def test_replies_cannot_grow_beyond_what_the_budget_reckons_with(extra_body: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="which the budget reckons with"):
        JudgeClient(ScriptedJudge(), "judge-1", 64, extra_body)


def test_every_arm_is_compared_on_the_same_requests(run: LoadedRun) -> None:
    pairs = [planned.pair for planned in prepare(run, order_of(items=3)).plan.pairs]
    by_arm = {arm: {pair.request_id for pair in pairs if pair.arm_id == arm} for arm in (AA, CANDIDATE)}
    assert by_arm[AA] == by_arm[CANDIDATE]
    assert len(by_arm[AA]) == 3
