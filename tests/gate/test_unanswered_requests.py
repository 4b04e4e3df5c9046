"""No arm passes a time rule, or shows a gain in time, by requests that it failed or answered with nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from quantgate.gate.judge import judge
from quantgate.gate.policy import Policy, stored_policy
from quantgate.gate.verdict_model import ArmVerdict
from quantgate.metrics.columns import is_equal
from quantgate.store.run_folder import LoadedRun

RunOf = Callable[..., LoadedRun]
EVERY_SECOND = 2


def policy(metric: str, statistic: str, gain: bool) -> Policy:
    rule = {"metric": metric, "statistic": statistic}
    document = {
        "schema": "quantgate.policy/1", "name": "p", "resamples": 1000, "aa": {"required": False},
        "slo": {"interactive": {"ttft_ms": 60_000}},
        "rules": [rule | {"id": "time", "margin": "10%"}, {"id": "slo", "metric": "slo_attainment", "margin": "5pp"}],
        "gain": {"any": [rule | {"at_least": "10%"}]} if gain else None,
    }  # fmt: skip
    return stored_policy(document, "p")


def emptied(run: LoadedRun, arm_id: str, **columns: Any) -> LoadedRun:
    """Every second request of the arm finishes, but without a token, or with the columns that are given."""
    nothing = {"output_tokens": 0, "first_token_ns": None, "last_token_ns": None, "first_answer_ns": None}
    rows = run.requests.to_pylist()
    own = np.flatnonzero(is_equal(run.requests, "arm_id", arm_id))
    for row in own[::EVERY_SECOND]:
        rows[row] |= nothing | columns
    return replace(run, requests=pa.Table.from_pylist(rows, schema=run.requests.schema))


def judged(run: LoadedRun, metric: str, statistic: str, *, gain: bool = False) -> ArmVerdict:
    [arm] = judge(run, policy(metric, statistic, gain), today=date(2026, 1, 1)).arms.values()
    return arm


@pytest.fixture
def run(run_of: RunOf, arm: Any) -> LoadedRun:
    """80 requests; the candidate is four times as fast as the baseline in those that it serves."""
    return run_of(arm("base", "baseline"), arm("other", slowdown=0.25), requests=80)


@pytest.mark.parametrize("metric", ["ttft_ms", "ttft_from_sent_ms", "time_to_first_answer_ms", "tpot_ms", "e2e_ms"])
def test_answers_without_a_token_are_infinitely_slow_and_outside_their_slo(run: LoadedRun, metric: str) -> None:
    found = judged(emptied(run, "other"), metric, "p95", gain=True)
    time, slo = found.rules
    assert (time.n, time.candidate, time.outcome, slo.outcome) == (80, None, "fail", "fail")
    assert "40 of 80 requests went unanswered on other, 0 on base; they count as infinitely slow." in time.reason
    assert found.verdict == "do_not_ship"
    assert found.gains[0].outcome == "fail"
    assert found.gains[0].reason.startswith("has no value: 40 of 80 requests went unanswered on other")


def test_a_percentile_that_failures_reach_only_perhaps_is_undecided(run_of: RunOf, arm: Any) -> None:
    half = run_of(arm("base", "baseline"), arm("other", slowdown=0.25, failed=39), requests=80)
    [gain] = judged(half, "ttft_ms", "p50", gain=True).gains
    assert gain.outcome == "inconclusive"
    assert gain.interval[0] is None


def test_a_baseline_whose_percentile_is_a_failure_says_nothing(run_of: RunOf, arm: Any) -> None:
    found = judged(run_of(arm("base", "baseline", failed=60), arm("other"), requests=80), "ttft_ms", "p50", gain=True)
    sentence = "so many requests went unanswered on base that its p50 is one of them"
    assert found.rules[0].outcome == "uninformative"
    assert found.rules[0].reason == f"S{sentence[1:]}."
    assert found.gains[0].reason == f"cannot be told: {sentence}."


@pytest.mark.parametrize("failed", [1, 40])
def test_a_mean_over_the_served_neither_passes_nor_gains_where_the_candidate_failed_more(
    run_of: RunOf, arm: Any, failed: int
) -> None:
    found = judged(
        run_of(arm("base", "baseline"), arm("other", slowdown=0.25, failed=failed), requests=80),
        "e2e_ms",
        "mean",
        gain=True,
    )
    time, gain = found.rules[0], found.gains[0]
    assert (time.n, time.outcome, gain.outcome) == (80 - failed, "inconclusive", "inconclusive")
    assert time.interval[1] is None
    assert (time.mde, time.n_needed) == (None, None)
    missing = (
        f"{failed} of 80 requests went unanswered on other, 0 on base; the mean is that of the requests which both"
    )
    assert missing in time.reason
    assert missing in gain.reason


def test_a_mean_still_shows_the_loss_of_what_was_served(run_of: RunOf, arm: Any) -> None:
    slow = run_of(arm("base", "baseline"), arm("other", slowdown=3.0, failed=10), requests=80)
    assert judged(slow, "e2e_ms", "mean").rules[0].outcome == "fail"


def test_a_mean_stands_where_the_candidate_failed_no_more_than_the_baseline(run_of: RunOf, arm: Any) -> None:
    both = run_of(arm("base", "baseline", failed=3), arm("other", slowdown=0.25, failed=3), requests=80)
    found = judged(both, "e2e_ms", "mean", gain=True)
    assert (found.rules[0].n, found.rules[0].outcome, found.gains[0].outcome) == (77, "pass", "pass")


def test_pairs_without_the_time_on_one_side_are_told(run: LoadedRun) -> None:
    """Answers of one token have no TPOT; they are not slow, but their pairs do not vanish unseen."""
    single = {"output_tokens": 1, "first_token_ns": 10**12, "last_token_ns": 10**12, "first_answer_ns": 10**12}
    words = "40 more pairs do not count: one of the two answers has no such time"
    [time, _] = judged(emptied(run, "other", **single), "tpot_ms", "p50").rules
    assert time.n == 40
    assert words in time.reason
    few = judged(emptied(run, "other", **single), "tpot_ms", "p95", gain=True)
    assert few.rules[0].reason.startswith(f"40 requests carry no interval of p95; at least 72 are needed. {words}")
    assert few.gains[0].reason.startswith(f"cannot be told from 40 requests, at least 72 are needed. {words}")
