"""The budget holds, whatever calls use, however many run at once, and however they fail."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.judging.answered_run import ScriptedJudge, answered_run, order_of, preferring_baseline

from quantgate.judging.budget import Budget, CallLimit, Spending
from quantgate.judging.cost import Prices, call_limit, likely_cost
from quantgate.judging.judge_client import JudgeClient
from quantgate.judging.judge_run import prepare
from quantgate.judging.judging_session import JudgingSession
from quantgate.judging.rows import spending
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.openai.endpoint import EndpointError

REQUESTS = 12
RUN = answered_run(REQUESTS, preferring_baseline(0.5, REQUESTS, seed=1))
KINDS = ("connect", "status_429", "status_5xx", "status_4xx", "early_close", "malformed_event", "timeout")


def test_a_reservation_is_settled_once_and_gives_the_rest_back() -> None:
    budget = Budget(2, 100, Spending())
    reserved = budget.reserve([CallLimit(40, 20)])
    assert reserved is not None
    assert budget.reserve([CallLimit(40, 20)]) is None
    reserved[0].settle(Spending(1, 10, 5))
    assert budget.spent == Spending(1, 10, 5)
    assert budget.reserve([CallLimit(60, 25)]) is not None
    assert budget.reserve([CallLimit(0, 0)]) is None
    with pytest.raises(ValueError, match="ended already"):
        reserved[0].settle(Spending(1, 10, 5))
    reserved[0].release()
    assert budget.spent.requests == 1


def test_several_calls_are_reserved_together_or_not_at_all() -> None:
    budget = Budget(10, 100, Spending(3, 10, 10))
    assert budget.reserve([CallLimit(30, 10), CallLimit(30, 11)]) is None
    reserved = budget.reserve([CallLimit(30, 10), CallLimit(30, 10)])
    assert reserved is not None
    for reservation in reserved:
        reservation.release()
    assert budget.spent == Spending(3, 10, 10)
    assert budget.reserve([CallLimit(80, 0)]) is not None


@st.composite
def sessions(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "requests": draw(st.integers(1, 70)),
        "tokens": draw(st.integers(0, 60_000)),
        "concurrency": draw(st.integers(1, 9)),
        "max_tokens": draw(st.integers(16, 400)),
        "faults": draw(st.lists(st.sampled_from((None, None, None, *KINDS)), min_size=1, max_size=30)),
        "used": draw(st.sampled_from(["little", "random", "all", "untold"])),
        "latency_s": draw(st.sampled_from([0.0, 5.0])),
        "seed": draw(st.integers(0, 100)),
    }


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_no_session_spends_more_than_its_budget(case: dict[str, Any]) -> None:
    def usage(body: dict[str, Any], random: Any) -> dict[str, int] | None:
        limit = call_limit(body["messages"], case["max_tokens"])
        most = (limit.prompt_tokens, limit.completion_tokens)
        prompt, completion = {
            "little": (1, 1), "random": tuple(random.randint(0, each) for each in most), "all": most, "untold": (0, 0)
        }[case["used"]]  # fmt: skip
        counted = {"prompt_tokens": prompt, "completion_tokens": completion}
        return None if case["used"] == "untold" else counted

    def fault(call: int) -> EndpointError | None:
        kind = case["faults"][call % len(case["faults"])]
        return EndpointError("It failed.", kind) if kind else None

    judge = ScriptedJudge(seed=case["seed"], usage=usage, fault=fault, latency_s=case["latency_s"])
    order = order_of(
        budget_requests=case["requests"], budget_tokens=case["tokens"], max_tokens=case["max_tokens"], seed=case["seed"]
    )
    prepared = prepare(RUN, order)
    budget = Budget(order.budget_requests, order.budget_tokens, Spending())
    written: list[Any] = []
    session = JudgingSession(
        JudgeClient(judge, "judge-1", order.max_tokens, {}), budget, concurrency=case["concurrency"],
        write=written.append, on_pair=lambda done: None,
    )  # fmt: skip
    outcome = run_in_virtual_time(lambda clock: session.run(prepared.plan))

    assert len(judge.bodies) == budget.spent.requests <= order.budget_requests
    assert budget.spent.tokens <= order.budget_tokens
    assert spending(outcome.rows) == budget.spent
    assert judge.most_at_once <= case["concurrency"]
    # Nothing stays set aside: all that is left of the budget can be reserved.
    left = order.budget_tokens - budget.spent.tokens
    if budget.spent.requests < order.budget_requests:
        assert budget.reserve([CallLimit(left, 0)]) is not None
    # What was neither begun nor judged is said.
    begun = {(row["arm_id"], row["request_id"]) for row in outcome.rows}
    assert outcome.left == len(prepared.plan.pairs) - len(begun)
    assert (outcome.left > 0) <= (outcome.stopped is not None)


def test_a_budget_for_one_pair_judges_one_pair_and_says_so() -> None:
    judge = ScriptedJudge()
    prepared = prepare(RUN, order_of(budget_requests=3))
    session = JudgingSession(
        JudgeClient(judge, "judge-1", 64, {}), Budget(3, 10**6, Spending()), concurrency=4,
        write=lambda rows: None, on_pair=lambda done: None,
    )  # fmt: skip
    outcome = run_in_virtual_time(lambda clock: session.run(prepared.plan))
    assert len(judge.bodies) == 2
    assert outcome.left == len(prepared.plan.pairs) - 1
    assert outcome.stopped == "the budget does not cover the next pair"


def test_calls_in_flight_give_back_before_the_budget_counts_as_spent() -> None:
    """Each call may use 64 reply tokens and uses 1: with room for two calls at a time, all pairs are judged."""
    judge = ScriptedJudge(usage=lambda body, random: {"prompt_tokens": 1, "completion_tokens": 1}, latency_s=1.0)
    prepared = prepare(RUN, order_of())
    most = prepared.plan.most.tokens // prepared.plan.most.requests
    session = JudgingSession(
        JudgeClient(judge, "judge-1", 64, {}), Budget(1000, 3 * most, Spending()), concurrency=8,
        write=lambda rows: None, on_pair=lambda done: None,
    )  # fmt: skip
    outcome = run_in_virtual_time(lambda clock: session.run(prepared.plan))
    assert outcome.stopped is None
    assert len(judge.bodies) == prepared.plan.most.requests == 4 * REQUESTS


def test_what_was_spent_before_counts() -> None:
    assert Budget(10, 1000, Spending(10, 0, 0)).reserve([CallLimit(1, 1)]) is None
    assert Budget(10, 1000, Spending(1, 600, 399)).reserve([CallLimit(1, 1)]) is None
    assert Budget(10, 1000, Spending(1, 600, 398)).reserve([CallLimit(1, 1)]) is not None


def test_the_bound_of_a_call_counts_bytes_and_the_estimate_a_quarter_of_them() -> None:
    messages = [{"role": "system", "content": "ab"}, {"role": "user", "content": "日本"}]
    assert call_limit(messages, 50) == CallLimit(2 + 6 + 256, 50)
    assert likely_cost(messages, 20) == Spending(1, 2, 20)


def test_money_is_tokens_by_the_million() -> None:
    assert Prices(prompt=2.0, completion=10.0).of(Spending(7, 500_000, 100_000)) == pytest.approx(2.0)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_server_that_bills_too_much_gets_no_further_call(concurrency: int) -> None:
    """Only what is under way when the first bill comes is still paid: no second order of any pair."""
    judge = ScriptedJudge(usage=lambda body, random: {"prompt_tokens": 10**6, "completion_tokens": 0}, latency_s=1.0)
    prepared = prepare(RUN, order_of())
    session = JudgingSession(
        JudgeClient(judge, "judge-1", 64, {}), Budget(1000, 50_000, Spending()), concurrency=concurrency,
        write=lambda rows: None, on_pair=lambda done: None,
    )  # fmt: skip
    outcome = run_in_virtual_time(lambda clock: session.run(prepared.plan))
    assert len(judge.bodies) == concurrency
    assert outcome.overrun_tokens == concurrency * 10**6 - 50_000
    assert outcome.left == len(prepared.plan.pairs) - concurrency
    assert outcome.stopped == "the judge's server billed more than its calls were allowed to use"


def test_a_refused_call_is_not_repeated_after_an_overrun() -> None:
    """The first pair waits for its turn while the second one overdraws."""
    judge = ScriptedJudge(
        usage=lambda body, random: {"prompt_tokens": 10**6, "completion_tokens": 0},
        fault=lambda call: EndpointError("Later.", "status_429", 429) if call == 1 else None,
    )
    prepared = prepare(RUN, order_of())
    budget = Budget(1000, 50_000, Spending())
    session = JudgingSession(
        JudgeClient(judge, "judge-1", 64, {}), budget, concurrency=2, write=lambda rows: None,
        on_pair=lambda done: None,
    )  # fmt: skip
    run_in_virtual_time(lambda clock: session.run(prepared.plan))
    assert len(judge.bodies) == 2
    assert budget.spent == Spending(2, 10**6, 0)
