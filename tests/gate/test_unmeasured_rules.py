"""Rules about what an arm did not give: undecided, with the reason, and never a number of something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any, Literal

import pyarrow as pa
import pytest

from quantgate.gate.judge import judge
from quantgate.gate.policy import Policy, stored_policy
from quantgate.gate.verdict_model import RuleResult
from quantgate.metrics.columns import is_equal
from quantgate.store.run_folder import LoadedRun
from quantgate.store.tier_status import QualityTier, TierStatus

RunOf = Callable[..., LoadedRun]
REASON = "only the 20 likeliest tokens are compared: KL is a lower bound over them, called kl_topk"


def policy(*metrics: str) -> Policy:
    document = {
        "schema": "quantgate.policy/1",
        "name": "p",
        "rules": [{"metric": metric, "margin": 0.1} for metric in metrics],
        "gain": None,
        "aa": {"required": False},
    }
    return stored_policy(document, "p")


def judged(
    run: LoadedRun, tier: QualityTier, status: Literal["exact", "partial", "not_measurable"], reason: str, *metrics: str
) -> dict[str, RuleResult]:
    statuses = [TierStatus(tier=tier, arm_id="other", status=status, reason=reason)]
    told = replace(run, manifest=run.manifest.model_copy(update={"quality_tiers": statuses}))
    [arm] = judge(told, policy(*metrics), today=date(2026, 1, 1)).arms.values()
    return {rule.metric: rule for rule in arm.rules}


def without(run: LoadedRun, tier: str) -> LoadedRun:
    return replace(run, quality=run.quality.filter(pa.array(~is_equal(run.quality, "tier", tier))))


def renamed(run: LoadedRun, old: str, new: str) -> LoadedRun:
    rows = [row | {"metric": new if row["metric"] == old else row["metric"]} for row in run.quality.to_pylist()]
    return replace(run, quality=pa.Table.from_pylist(rows, schema=run.quality.schema))


@pytest.fixture
def run(run_of: RunOf, arm: Any) -> LoadedRun:
    return run_of(arm("base", "baseline"), arm("other"), requests=8)


def test_a_lower_bound_is_never_taken_for_kl(run: LoadedRun) -> None:
    rules = judged(renamed(run, "kl", "kl_topk"), "distribution", "partial", REASON, "kl_mean", "kl_topk")
    assert rules["kl_mean"].outcome == "inconclusive"
    assert rules["kl_mean"].reason == f"Not measurable: {REASON}."
    assert (rules["kl_mean"].estimate, rules["kl_mean"].n, rules["kl_mean"].n_needed) == (None, 0, None)
    assert rules["kl_topk"].outcome == "pass"
    assert "lower bound" in rules["kl_topk"].title


def test_whole_distributions_are_not_called_a_bound(run: LoadedRun) -> None:
    rules = judged(run, "distribution", "exact", "", "kl_mean", "kl_topk")
    assert rules["kl_mean"].outcome == "pass"
    assert rules["kl_topk"].outcome == "inconclusive"
    assert "kl_mean is their divergence" in rules["kl_topk"].reason


@pytest.mark.parametrize(
    ("tier", "rows", "metrics"),
    [
        ("distribution", "distribution", ["kl_mean", "nll_increase", "top1_disagreement", "first_token_disagreement"]),
        ("likelihood", "task", ["gold_preferred", "gold_logprob"]),
        ("answers", "task", ["correct", "refusal_change", "loop_rate", "json_parse_rate"]),
    ],
)
def test_a_tier_that_could_not_be_measured_decides_nothing(
    run: LoadedRun, tier: QualityTier, rows: str, metrics: list[str]
) -> None:
    rules = judged(without(run, rows), tier, "not_measurable", "no tokenizer given", *metrics)
    assert {rule.outcome for rule in rules.values()} == {"inconclusive"}
    assert {rule.reason for rule in rules.values()} == {"Not measurable: no tokenizer given."}


def test_a_run_that_never_asked_says_what_is_missing_as_before(run: LoadedRun) -> None:
    [arm] = judge(without(run, "distribution"), policy("kl_mean"), today=date(2026, 1, 1)).arms.values()
    assert arm.rules[0].reason == "0 sequences carry no interval of mean; at least 2 are needed."
