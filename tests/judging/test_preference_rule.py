"""The policy rule `preference`: what the gate makes of judgements."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from tests.judging.answered_run import AA, BASELINE, CANDIDATE, run_of

from quantgate.gate.judge import judge
from quantgate.gate.policy import Policy
from quantgate.gate.verdict_model import RuleResult, Verdict
from quantgate.judging.calibration import net_preference
from quantgate.judging.pair_verdicts import judged_pairs
from quantgate.stats.tango import tango_interval
from quantgate.store.run_folder import LoadedRun
from quantgate.store.schemas import JUDGEMENTS

POLICY = Policy.model_validate(
    {
        "schema": "quantgate.policy/1", "name": "p", "gain": None, "aa": {"required": False},
        "rules": [{"id": "judged", "metric": "preference", "margin": "10pp"}],
    }
)  # fmt: skip
CHOICES = {"baseline": ("1", "2"), "other": ("2", "1"), "tie": ("tie", "tie"), "undecided": ("1", "unparsable")}


def rows_of(arm_id: str, source: str = "judge", start: int = 0, **counts: int) -> list[dict[str, Any]]:
    """So many pairs that prefer the `baseline`, the `other`, are a `tie`, or `undecided`."""
    rows = []
    verdicts = [verdict for verdict, count in counts.items() for _ in range(count)]
    for number, verdict in enumerate(verdicts, start):
        for order, choice in zip(("baseline_first", "baseline_second"), CHOICES[verdict], strict=True):
            rows.append(
                {
                    "arm_id": arm_id, "request_id": f"r{number}", "pass_index": 0, "cluster_id": f"r{number}",
                    "order": order, "choice": choice, "judge": "j", "source": source, "error_kind": None,
                    "reason": None, "prompt_tokens": 0, "completion_tokens": 0,
                }
            )  # fmt: skip
    return rows


def judged(*rows: list[dict[str, Any]]) -> LoadedRun:
    table = pa.Table.from_pylist([row for part in rows for row in part], schema=JUDGEMENTS)
    return replace(run_of([]), judgements=table)


def verdict_on(*rows: list[dict[str, Any]]) -> Verdict:
    return judge(judged(*rows), POLICY, today=date(2026, 1, 1))


def rule_on(*rows: list[dict[str, Any]]) -> RuleResult:
    (result,) = verdict_on(*rows).arms[CANDIDATE].rules
    return result


def test_the_loss_is_the_net_preference_with_tangos_interval() -> None:
    rows = rows_of(CANDIDATE, baseline=30, other=18, tie=52)
    result = rule_on(rows)
    assert result.estimate == pytest.approx(0.12)
    assert result.interval == pytest.approx(tuple(tango_interval(30, 18, 100)))
    assert (result.baseline, result.candidate, result.n) == (0.3, 0.18, 100)
    assert result.outcome == "inconclusive"
    assert result.counts == {"baseline_preferred": 30, "candidate_preferred": 18, "ties": 52, "decided_by_people": 0}
    # The report's figure is the gate's.
    net = net_preference(judged_pairs(judged(rows).judgements), 0.95)
    assert net is not None
    assert (net.value, tuple(net.interval)) == (pytest.approx(result.estimate), pytest.approx(result.interval))


@pytest.mark.parametrize(
    ("counts", "outcome", "word"),
    [
        ({"baseline": 20, "other": 20, "tie": 160}, "pass", "ship"),
        ({"baseline": 120, "other": 40, "tie": 40}, "fail", "do_not_ship"),
        ({"baseline": 12, "other": 8, "tie": 20}, "inconclusive", "not_enough_evidence"),
    ],
)
def test_it_decides(counts: dict[str, int], outcome: str, word: str) -> None:
    verdict = verdict_on(rows_of(CANDIDATE, **counts), rows_of(AA, baseline=10, other=10, tie=40))
    assert verdict.arms[CANDIDATE].rules[0].outcome == outcome
    assert verdict.verdict == word
    assert verdict.baseline == BASELINE


def test_a_run_that_was_not_judged_leaves_it_open() -> None:
    result = rule_on()
    assert result.outcome == "inconclusive"
    assert result.reason == "The run has no judged pairs for this rule."


def test_an_unfit_judge_says_nothing() -> None:
    unfit = rows_of(AA, baseline=40, other=10, tie=10)
    result = rule_on(rows_of(CANDIDATE, tie=200), unfit)
    assert result.outcome == "uninformative"
    assert "two answers of the same build" in result.reason
    fit = rows_of(AA, baseline=20, other=16, tie=24)
    assert rule_on(rows_of(CANDIDATE, tie=200), fit).outcome == "pass"


def test_people_need_no_calibration() -> None:
    unfit = rows_of(AA, baseline=40, other=10, tie=10)
    result = rule_on(rows_of(CANDIDATE, source="human", tie=200), unfit)
    assert (result.outcome, result.counts["decided_by_people"]) == ("pass", 200)


def test_too_many_pairs_without_a_verdict_say_nothing() -> None:
    """Identical answers never lack a verdict: with the others left out, any build would look harmless."""
    few = rule_on(rows_of(CANDIDATE, tie=180, undecided=20))
    assert (few.outcome, few.n) == ("pass", 180)
    many = rule_on(rows_of(CANDIDATE, tie=180, undecided=21))
    assert many.outcome == "uninformative"
    assert "21 of 201 pairs have no verdict" in many.reason
    none = rule_on(rows_of(CANDIDATE, undecided=3))
    assert (none.outcome, none.n) == ("uninformative", 0)


def test_it_takes_points_and_no_class() -> None:
    rule = {"metric": "preference", "margin": "5%"}
    document = POLICY.model_dump(mode="json", by_alias=True)
    with pytest.raises(ValueError, match="percentage points"):
        Policy.model_validate(document | {"rules": [rule]})
    with pytest.raises(ValueError, match="takes no slo_class"):
        Policy.model_validate(document | {"rules": [rule | {"margin": "5pp", "slo_class": "batch"}]})
