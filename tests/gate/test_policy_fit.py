"""A policy that speaks of classes, tasks or arms which a run does not have is told so, before the run and after it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from quantgate.gate.judge import judge
from quantgate.gate.policy import Policy, stored_policy
from quantgate.gate.policy_fit import check_policy_fits
from quantgate.store.run_folder import LoadedRun
from quantgate_engine.errors import ConfigurationError

LATENCY = {"metric": "ttft_ms", "statistic": "p50", "margin": "10%"}
TASK = {"metric": "correct", "margin": "2pp"}
WAIVER = {"rule": "ttft_ms-p50", "arm": "int4", "reason": "known", "expires": "2099-01-01"}
GAIN = {"metric": "tpot_ms", "statistic": "p50", "at_least": "10%"}


def policy(**changes: Any) -> Policy:
    document: dict[str, Any] = {
        "schema": "quantgate.policy/1", "name": "p", "rules": [LATENCY], "gain": None, "aa": {"required": False},
    }  # fmt: skip
    return stored_policy(document | changes, "p")


def check(asked: Policy, tasks: tuple[str, ...] = ("rag", "code")) -> None:
    check_policy_fits(asked, classes={"interactive", "batch"}, tasks=tasks, arms=["int8", "int4"])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"rules": [LATENCY | {"slo_class": "intractive"}]},
            "Policy p: rule ttft_ms-p50-intractive is about the SLO class 'intractive', which this run does not have; "
            "did you mean 'interactive'?",
        ),
        (
            {"rules": [TASK | {"task": "nope"}]},
            "Policy p: rule correct-rate-nope is about the task 'nope', which this run does not have; expected one of: "
            "code, rag.",
        ),
        ({"gain": {"any": [GAIN | {"slo_class": "zzz"}]}}, "gain tpot_ms-p50-zzz is about the SLO class 'zzz'"),
        ({"waivers": [WAIVER | {"arm": "nosuch"}]}, "the waiver of rule ttft_ms-p50 is about the candidate arm 'nosu"),
    ],
)
def test_what_the_run_will_not_have_is_refused_before_it(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check(policy(**changes))
    assert sentence in str(caught.value)


def test_what_the_run_will_have_is_accepted() -> None:
    rules = [LATENCY, LATENCY | {"id": "a", "slo_class": "batch"}, TASK | {"task": "rag"}]
    check(policy(rules=rules, waivers=[WAIVER], gain={"all": [GAIN | {"slo_class": "interactive"}]}))


def test_a_run_that_measures_no_task_leaves_rules_on_tasks_unmeasured() -> None:
    check(policy(rules=[TASK | {"task": "rag"}]), tasks=())


def reasons(run: LoadedRun, **changes: Any) -> list[tuple[str, str]]:
    [arm] = judge(run, policy(**changes), today=date(2026, 1, 1)).arms.values()
    return [(result.outcome, result.reason) for result in (*arm.rules, *arm.gains)]


def test_a_stored_run_says_what_it_has_instead(run_of: Callable[..., LoadedRun], arm: Any) -> None:
    run = run_of(arm("base", "baseline"), arm("other"))
    no_class = ("inconclusive", "No request has class 'intractive'; this run has batch, interactive.")
    assert reasons(run, rules=[LATENCY | {"slo_class": "intractive"}]) == [no_class]
    assert reasons(run, rules=[{"metric": "gold_preferred", "margin": "2pp", "task": "nope"}]) == [
        ("inconclusive", "No item is of task 'nope'; this run has t0, t1, t2, t3, t4.")
    ]
    assert reasons(run, gain={"any": [GAIN | {"slo_class": "intractive"}]})[1] == no_class


@pytest.mark.parametrize("share", ["100%", "400%"])
def test_more_than_the_whole_can_never_be_gained(share: str) -> None:
    with pytest.raises(ConfigurationError, match=r"gain.any.0.at_least: expected a share below 100%, got '" + share):
        policy(gain={"any": [{"metric": "weight_bytes", "at_least": share}]})
