"""No arm passes a task rule by the items that it failed to answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from quantgate.gate.judge import judge
from quantgate.gate.policy import stored_policy
from quantgate.gate.verdict_model import RuleResult
from quantgate.store.run_folder import LoadedRun

RunOf = Callable[..., LoadedRun]


def judged(run: LoadedRun, metric: str, margin: float) -> RuleResult:
    document = {
        "schema": "quantgate.policy/1", "name": "p", "resamples": 1000, "gain": None, "aa": {"required": False},
        "rules": [{"metric": metric, "margin": margin}],
    }  # fmt: skip
    [arm] = judge(run, stored_policy(document, "p"), today=date(2026, 1, 1)).arms.values()
    return arm.rules[0]


def without_items(run: LoadedRun, arm_id: str, lost: int) -> LoadedRun:
    """The run as if the arm had failed its first task items."""
    items = {f"i{index}" for index in range(lost)}
    gone = [
        row["arm_id"] == arm_id and row["tier"] == "task" and row["item_id"] in items
        for row in run.quality.select(["arm_id", "tier", "item_id"]).to_pylist()
    ]
    return replace(run, quality=run.quality.filter(pa.array([not lost_row for lost_row in gone])))


@pytest.fixture
def run(run_of: RunOf, arm: Any) -> LoadedRun:
    return run_of(arm("base", "baseline"), arm("other"), items=200, requests=8)


def test_an_item_that_the_candidate_alone_failed_is_wrong(run: LoadedRun) -> None:
    whole, lost = judged(run, "gold_preferred", 0.1), judged(without_items(run, "other", 100), "gold_preferred", 0.1)
    assert whole.outcome == "pass"
    assert (lost.outcome, lost.n) == ("fail", 200)
    assert "Items that failed on other alone: 100; they count as wrong." in lost.reason


def test_a_mean_over_the_items_that_are_left_does_not_pass(run: LoadedRun) -> None:
    whole, lost = judged(run, "gold_logprob", 0.1), judged(without_items(run, "other", 1), "gold_logprob", 0.1)
    assert whole.outcome == "pass"
    assert (lost.outcome, lost.n, lost.interval[1]) == ("inconclusive", 199, None)
    assert "they leave the loss without an upper limit." in lost.reason


@pytest.mark.parametrize("metric", ["gold_preferred", "gold_logprob"])
def test_items_that_the_baseline_failed_credit_nobody(run: LoadedRun, metric: str) -> None:
    rule = judged(without_items(run, "base", 50), metric, 0.1)
    assert (rule.outcome, rule.n) == ("pass", 150)


def test_an_arm_without_a_single_item_was_not_measured(run: LoadedRun) -> None:
    rule = judged(without_items(run, "other", 200), "gold_preferred", 0.1)
    assert (rule.outcome, rule.n) == ("inconclusive", 0)
