"""What each family of rules measures, by hand-made tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from quantgate.gate.evaluate_rule import evaluate_rule
from quantgate.gate.evidence import Evidence, Pairing
from quantgate.gate.families.registry import RULE_METRICS
from quantgate.gate.families.rule_metric import Measurement, RuleQuestion
from quantgate.gate.policy import Policy
from quantgate.stats.tango import tango_interval
from quantgate.store.run_folder import LoadedRun
from quantgate.store.schemas import QUALITY
from quantgate.validation import parse_yaml_model

RunOf = Callable[..., LoadedRun]


def measure(pairing: Pairing, name: str, margin: float = 0.1, **question: Any) -> Measurement:
    metric = RULE_METRICS[name]
    settings: dict[str, Any] = {
        "statistic": metric.statistics[0],
        "loss_unit": next(iter(metric.margin_units.values())),
        "margin": margin,
        "confidence": 0.95,
        "resamples": 1000,
        "seed": 0,
    }
    return metric.measure(pairing, RuleQuestion(**(settings | question)))


def quality_pairing(
    run_of: RunOf, arm: Any, tier: str, metric: str, values: dict[str, list[float]], floor: float | None = None
) -> Pairing:
    """Items i0, i1, ... of one task with the given values on arms `base` and `other`."""
    rows = [
        {
            "arm_id": arm_id, "tier": tier, "task": "t", "item_id": f"i{index}", "cluster_id": f"i{index}",
            "metric": metric, "value": float(value), "floor": floor,
        }
        for arm_id, column in values.items()
        for index, value in enumerate(column)
    ]  # fmt: skip
    run = run_of(arm("base", "baseline"), arm("other"), requests=8)
    table = pa.Table.from_pylist([row | dict.fromkeys(QUALITY.names[8:]) for row in rows], schema=QUALITY)
    return Evidence(replace(run, quality=table)).pair("base", "other")


def with_columns(pairing: Pairing, **columns: list[Any]) -> Pairing:
    """The candidate's table with some columns replaced."""
    table = pairing.candidate
    for name, column in columns.items():
        index = table.schema.get_field_index(name)
        table = table.set_column(index, table.schema.field(index), pa.array(column, table.schema.field(index).type))
    return replace(pairing, candidate=table)


def test_binary_losses_are_tangos(run_of: RunOf, arm: Any) -> None:
    values = {"base": [1] * 12 + [0] * 8, "other": [0] * 3 + [1] * 10 + [0] * 7}
    found = measure(quality_pairing(run_of, arm, "task", "gold_preferred", values, floor=0.1), "gold_preferred")
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx((3 - 1) / 20)
    assert found.estimate.interval == tango_interval(3, 1, 20)
    assert (found.baseline, found.candidate, found.uninformative) == (0.6, 0.5, None)


@pytest.mark.parametrize(
    ("right", "floor", "reason"),
    [(6, 0.25, "not above chance"), (0, 0.0, "not above chance"), (12, 0.55, "above chance")],
)
def test_a_task_at_its_floor_says_so(run_of: RunOf, arm: Any, right: int, floor: float, reason: str) -> None:
    values = {"base": [1] * right + [0] * (20 - right), "other": [0] * 20}
    found = measure(quality_pairing(run_of, arm, "task", "correct", values, floor=floor), "correct")
    assert found.uninformative is not None
    assert reason in found.uninformative


def test_a_baseline_that_has_less_to_lose_than_the_margin_says_nothing(run_of: RunOf, arm: Any) -> None:
    pairing = quality_pairing(run_of, arm, "task", "correct", {"base": [1] * 4 + [0] * 96, "other": [0] * 100}, 0.0)
    assert "all it could lose lies within the margin" in str(measure(pairing, "correct", margin=0.05).uninformative)
    assert measure(pairing, "correct", margin=0.02).uninformative is None


def test_the_fall_of_the_right_answers_log_probability(run_of: RunOf, arm: Any) -> None:
    values = {"base": [-1.0, -2.0, -3.0], "other": [-1.5, -2.0, -4.0]}
    found = measure(quality_pairing(run_of, arm, "task", "gold_logprob", values), "gold_logprob")
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(0.5)


@pytest.mark.parametrize(("more", "less"), [(4, 0), (0, 4)])
def test_refusing_more_and_refusing_less_are_both_losses(run_of: RunOf, arm: Any, more: int, less: int) -> None:
    base = [1.0] * 10 + [0.0] * 30
    other = [1.0] * (10 - less) + [0.0] * less + [1.0] * more + [0.0] * (30 - more)
    found = measure(
        quality_pairing(run_of, arm, "behaviour", "refused", {"base": base, "other": other}), "refusal_change"
    )
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(0.1)
    assert found.estimate.interval.upper == pytest.approx(tango_interval(4, 0, 40).upper)
    assert found.baseline == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("rule", "metric", "other", "loss"),
    [
        ("loop_rate", "looped", 1.0, 0.5),
        ("loop_rate", "looped", 0.0, 0.0),
        ("json_parse_rate", "json_parsed", 0.0, 0.0),
    ],
)
def test_habits_count_in_their_bad_direction(
    run_of: RunOf, arm: Any, rule: str, metric: str, other: float, loss: float
) -> None:
    values = {"base": [0.0] * 20, "other": [other] * 10 + [0.0] * 10}
    found = measure(quality_pairing(run_of, arm, "behaviour", metric, values), rule)
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(loss)
    assert (found.baseline, found.candidate) == (0.0, other / 2)


def test_distribution_rules_read_the_other_arm_alone(run_of: RunOf, arm: Any) -> None:
    agreement = quality_pairing(run_of, arm, "distribution", "top1_agreement", {"other": [0.9, 0.8, 1.0]})
    found = measure(agreement, "top1_disagreement")
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(0.1)
    first = quality_pairing(run_of, arm, "distribution", "first_token_agreement", {"other": [1.0, 0.0, 1.0, 1.0]})
    shown = measure(first, "first_token_disagreement")
    assert shown.estimate is not None
    assert shown.estimate.value == pytest.approx(0.25)
    assert measure(first, "kl_mean").minimum_n == 2


def test_one_class_of_requests_and_the_pairs_of_it(run_of: RunOf, arm: Any) -> None:
    pairing = Evidence(run_of(arm("base", "baseline"), arm("other", slowdown=2.0, noise=0.0), requests=96)).pair(
        "base", "other"
    )
    whole, batch = measure(pairing, "ttft_ms"), measure(pairing, "ttft_ms", slo_class="batch")
    assert (whole.n, batch.n) == (96, 24)
    assert measure(pairing, "ttft_ms", slo_class="absent").n == 0


def test_failed_requests_count_in_the_failure_rate(run_of: RunOf, arm: Any) -> None:
    pairing = Evidence(run_of(arm("base", "baseline"), arm("other", failed=60), requests=96)).pair("base", "other")
    failures = measure(pairing, "failure_rate")
    assert failures.candidate == pytest.approx(60 / 96)
    assert failures.estimate is not None
    assert failures.estimate.value == pytest.approx(60 / 96)


def test_a_planned_disconnect_is_no_failure(run_of: RunOf, arm: Any) -> None:
    pairing = Evidence(run_of(arm("base", "baseline"), arm("other"), requests=8)).pair("base", "other")
    left = with_columns(
        pairing, status=["aborted"] * 2 + ["finished"] * 6, abort_cause=["disconnect", "timeout"] + [None] * 6
    )
    found = measure(left, "failure_rate")
    assert found.n == 7
    assert found.candidate == pytest.approx(1 / 7)


@pytest.mark.parametrize(("cause", "n", "met"), [("disconnect", 7, 1.0), ("impatience", 8, 7 / 8)])
def test_clients_that_gave_up_waiting_found_their_slo_not_met(
    run_of: RunOf, arm: Any, cause: str, n: int, met: float
) -> None:
    pairing = Evidence(run_of(arm("base", "baseline"), arm("other"), requests=8)).pair("base", "other")
    left = with_columns(pairing, status=["aborted"] + ["finished"] * 7, abort_cause=[cause] + [None] * 7)
    found = measure(left, "slo_attainment")
    assert (found.n, found.candidate) == (n, pytest.approx(met))
    assert measure(left, "failure_rate").candidate == 0


def test_the_kinds_of_failures_stand_in_the_reason(run_of: RunOf, arm: Any) -> None:
    pairing = Evidence(run_of(arm("base", "baseline"), arm("other"), requests=8)).pair("base", "other")
    assert measure(pairing, "failure_rate").detail == ""
    broken = with_columns(
        pairing,
        status=["failed"] * 4 + ["aborted", "rejected", "aborted", "finished"],
        abort_cause=[None] * 4 + ["timeout", None, "disconnect", None],
        error_kind=["status_5xx", "early_close", "early_close", "early_close"] + [None] * 4,
    )
    expected = "other: 6 of 7 failed: early_close 3, status_5xx 1, timeout 1."
    assert measure(broken, "failure_rate").detail == expected
    policy = parse_yaml_model(
        "schema: quantgate.policy/1\nname: p\ngain: null\nrules: [{id: f, metric: failure_rate, margin: 1pp}]\n",
        Policy,
        name="p.yaml",
    )
    assert evaluate_rule(broken, policy.rules[0], policy, seed=0).reason.endswith(f". {expected}")


@pytest.mark.parametrize("lengths", ["natural", "forced"])
@pytest.mark.parametrize(("tokens", "loss"), [(15, 0.25), (25, 0.25), (20, 0.0)])
def test_a_change_of_length_counts_whoever_decided_on_it(
    run_of: RunOf, arm: Any, lengths: str, tokens: int, loss: float
) -> None:
    pairing = Evidence(run_of(arm("base", "baseline"), arm("other"), requests=8)).pair("base", "other")
    changed = with_columns(replace(pairing, output_lengths=lengths), output_tokens=[tokens] * 8)
    found = measure(changed, "output_length_change")
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(loss)
    assert found.estimate.interval == pytest.approx((loss, loss))


def test_a_baseline_without_a_token_has_no_length_to_compare_with(run_of: RunOf, arm: Any) -> None:
    pairing = Evidence(run_of(arm("base", "baseline"), arm("other"), requests=8)).pair("other", "base")
    silent = with_columns(pairing, output_tokens=[0] * 8)
    turned = replace(silent, baseline=silent.candidate, candidate=silent.baseline)
    assert "no tokens" in str(measure(turned, "output_length_change").uninformative)


def test_turns_of_a_session_share_a_cluster_and_blocks_do_not(run_of: RunOf, arm: Any) -> None:
    run = run_of(arm("base", "baseline"), arm("other"), requests=96)
    sessions = [f"s{index % 5}" if index < 24 else None for index in range(96)] * 2
    column = run.requests.schema.get_field_index("session_id")
    table = run.requests.set_column(column, run.requests.schema.field(column), pa.array(sessions, pa.string()))
    pairing = Evidence(replace(run, requests=table)).pair("base", "other")
    clusters = pairing.clusters
    for session in range(5):
        assert len({clusters[index] for index in range(24) if index % 5 == session}) == 1
    blocks = np.arange(96) * 4 // 96
    assert all(len(set(blocks[clusters == cluster])) == 1 for cluster in set(clusters))


def test_blocks_enough_are_the_clusters(run_of: RunOf, arm: Any) -> None:
    run = run_of(arm("base", "baseline"), arm("other"), requests=96)
    blocks = [index * 16 // 96 for index in range(96)]
    column = run.requests.schema.get_field_index("block_index")
    table = run.requests.set_column(column, run.requests.schema.field(column), pa.array(blocks * 2, pa.int32()))
    assert Evidence(replace(run, requests=table)).pair("base", "other").clusters.tolist() == blocks


def test_titles_are_told_apart_by_their_first_words() -> None:
    """Tables cut long titles and wrap narrow ones."""
    begin = [" ".join(metric.title.split()[:2]) for metric in RULE_METRICS.values()]
    assert len(set(begin)) == len(begin)
