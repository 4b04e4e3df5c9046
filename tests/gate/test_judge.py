"""Verdicts on runs of known truth."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from quantgate.gate.judge import judge
from quantgate.gate.policy import Policy
from quantgate.gate.verdict_model import Verdict
from quantgate.store.run_folder import LoadedRun
from quantgate.validation import parse_yaml_model
from quantgate_engine.errors import BaselineError, ConfigurationError

RunOf = Callable[..., LoadedRun]
TODAY = date(2026, 6, 1)
GAIN = "gain: {any: [{metric: weight_bytes, at_least: 25%}, {metric: tpot_ms, at_least: 10%}]}\n"
RULES = """
schema: quantgate.policy/1
name: test
resamples: 1000
slo: {interactive: {ttft_ms: 2000, tpot_ms: 200}}
must_match: [kv_dtype]
rules:
- {id: ttft, metric: ttft_ms, statistic: p50, margin: 50%}
- {id: tpot, metric: tpot_ms, statistic: p50, slo_class: interactive, margin: 30%}
- {id: slo, metric: slo_attainment, margin: 8pp}
- {id: failures, metric: failure_rate, margin: 6pp}
- {id: twin, metric: gold_preferred, margin: 8pp}
- {id: kl, metric: kl_mean, margin: 0.02nats}
- {id: top1, metric: top1_disagreement, margin: 5pp}
- {id: first, metric: first_token_disagreement, margin: 15pp}
"""


def policy_of(text: str = "gain: null\n") -> Policy:
    return parse_yaml_model(RULES + text, Policy, name="test.yaml")


def judged(run: LoadedRun, text: str = "gain: null\n", **options: Any) -> Verdict:
    return judge(run, policy_of(text), today=TODAY, **options)


@pytest.fixture
def both(arm: Any) -> tuple[Any, Any]:
    return arm("fp16", "baseline"), arm("fp16-aa", "aa")


def test_the_baseline_against_itself_ships_where_no_gain_is_asked_for(run_of: RunOf, arm: Any, both: Any) -> None:
    verdict = judged(run_of(*both, arm("same")))
    assert verdict.verdict == "ship"
    assert verdict.exit_code == 0
    assert all(rule.outcome == "pass" for rule in verdict.arms["same"].rules)
    assert len(verdict.aa) == 8
    assert verdict.arms["same"].reasons == ["8 of 8 rules passed, the loss lies within the margin."]


def test_a_harmless_build_that_brings_nothing_is_not_shipped(run_of: RunOf, arm: Any, both: Any) -> None:
    same = judged(run_of(*both, arm("same")), GAIN).arms["same"]
    assert same.verdict == "do_not_ship"
    assert same.gain_outcome == "fail"
    assert same.reasons[0].startswith("It does not bring what the policy asks for")
    assert not any(rule.outcome == "fail" for rule in same.rules)


@pytest.mark.parametrize("changes", [{"weight_bytes": 100_000_000}, {"slowdown": 0.7}])
def test_one_gain_of_an_any_list_suffices(run_of: RunOf, arm: Any, both: Any, changes: dict[str, Any]) -> None:
    assert judged(run_of(*both, arm("int8", **changes)), GAIN).arms["int8"].verdict == "ship"
    both_wanted = judged(run_of(*both, arm("int8", **changes)), GAIN.replace("any", "all"))
    assert both_wanted.arms["int8"].verdict == "do_not_ship"


def test_a_gain_that_was_not_measured_is_no_gain(run_of: RunOf, arm: Any, both: Any) -> None:
    wanted = "gain: {all: [{metric: peak_memory_bytes, at_least: 10%}]}\n"
    found = judged(run_of(*both, arm("int8")), wanted).arms["int8"]
    assert found.verdict == "not_enough_evidence"
    assert "peak memory was not measured on both arms" in found.reasons[0]


@pytest.mark.parametrize(
    ("changes", "rules", "others"),
    [
        ({"slowdown": 2.0}, {"ttft", "tpot"}, {"slo"}),
        ({"wrong": 0.4}, {"twin"}, set()),
        ({"kl": 0.2}, {"kl", "top1"}, set()),
        ({"failed": 30}, {"failures"}, {"slo"}),
    ],
)
def test_each_kind_of_loss_is_found_and_named(
    run_of: RunOf, arm: Any, both: Any, changes: dict[str, Any], rules: set[str], others: set[str]
) -> None:
    worse = judged(run_of(*both, arm("worse", **changes)), GAIN).arms["worse"]
    assert worse.verdict == "do_not_ship"
    failed = {rule.rule for rule in worse.rules if rule.outcome == "fail"}
    assert rules <= failed <= rules | others
    assert "beyond the margin of" in worse.reasons[0]


def test_over_many_seeds_yes_and_no_are_both_reliable(run_of: RunOf, arm: Any, both: Any) -> None:
    shipped = refused = 0
    for seed in range(12):
        verdict = judged(run_of(*both, arm("same"), arm("worse", kl=0.08, wrong=0.1), seed=seed), seed=seed)
        shipped += verdict.arms["same"].verdict == "ship"
        refused += verdict.arms["worse"].verdict == "do_not_ship"
    assert shipped >= 11
    assert refused >= 11


def test_too_few_requests_for_a_percentile_give_no_number(run_of: RunOf, arm: Any, both: Any) -> None:
    text = RULES.replace("statistic: p50, margin: 50%", "statistic: p99, margin: 50%") + "gain: null\n"
    verdict = judge(run_of(*both, arm("same")), parse_yaml_model(text, Policy, name="t"), today=TODAY)
    rule = verdict.arms["same"].rules[0]
    assert (rule.outcome, rule.estimate, rule.n, rule.n_needed) == ("inconclusive", None, 96, 368)
    assert verdict.arms["same"].verdict == "not_enough_evidence"
    assert verdict.exit_code == 4


def test_few_items_are_inconclusive_and_say_how_many_would_do(run_of: RunOf, arm: Any, both: Any) -> None:
    rule = judged(run_of(*both, arm("same", wrong=0.05), items=30)).arms["same"].rules[4]
    assert rule.outcome == "inconclusive"
    assert rule.n_needed is not None
    assert rule.n_needed > rule.n == 30
    assert f"; about {rule.n_needed:,} such items would decide, this run has 30." in rule.reason


@pytest.mark.parametrize("requests", [4, 16])
def test_how_many_requests_without_a_failure_would_decide_does_not_depend_on_how_many_there_were(
    run_of: RunOf, arm: Any, both: Any, requests: int
) -> None:
    """The upper limit of no failure in n is z^2 / (n + z^2), which falls below 1 pp at 381."""
    text = (
        "schema: quantgate.policy/1\nname: t\nrules: [{metric: failure_rate, margin: 1pp}]\ngain: null\n"
        "aa: {required: false}\n"
    )
    run = run_of(*both, arm("same"), requests=requests)
    rule = judge(run, parse_yaml_model(text, Policy, name="t"), today=TODAY).arms["same"].rules[0]
    assert (rule.outcome, rule.n, rule.n_needed) == ("inconclusive", requests, 381)


def test_a_baseline_at_chance_makes_the_rule_uninformative(run_of: RunOf, arm: Any, both: Any) -> None:
    weak = (arm("fp16", "baseline", wrong=0.65), arm("fp16-aa", "aa", wrong=0.65))
    found = judged(run_of(*weak, arm("other", wrong=0.65))).arms["other"]
    assert found.rules[4].outcome == "uninformative"
    assert "not above chance" in found.rules[4].reason
    assert found.verdict == "not_enough_evidence"


def test_noise_beyond_the_margin_makes_the_rule_uninformative(run_of: RunOf, arm: Any) -> None:
    drifting = (arm("fp16", "baseline"), arm("fp16-aa", "aa", slowdown=1.8))
    found = judged(run_of(*drifting, arm("same"), arm("slow", slowdown=1.8), arm("glacial", slowdown=6)))
    for name in ("same", "slow"):
        assert found.arms[name].rules[1].outcome == "uninformative"
        assert "this run's noise hides the answer" in found.arms[name].rules[1].reason
        assert found.arms[name].verdict == "not_enough_evidence"
    assert found.arms["glacial"].rules[1].outcome == "fail"
    assert found.arms["glacial"].rules[1].aa_estimate == pytest.approx(0.8, abs=0.1)


def test_without_the_aa_arm_nothing_ships_where_the_policy_requires_it(run_of: RunOf, arm: Any) -> None:
    run = run_of(arm("fp16", "baseline"), arm("same"))
    assert judged(run).arms["same"].verdict == "not_enough_evidence"
    assert judged(run, "gain: null\naa: {required: false}\n").arms["same"].verdict == "ship"


def test_a_waived_rule_does_not_count_until_it_expires(run_of: RunOf, arm: Any, both: Any) -> None:
    run = run_of(*both, arm("worse", kl=0.2), arm("other", kl=0.2))
    waivers = "waivers:\n" + "".join(
        f"- {{rule: {rule}, arm: worse, reason: known, expires: 2026-06-01}}\n" for rule in ("kl", "top1", "first")
    )
    verdict = judged(run, "gain: null\n" + waivers)
    assert verdict.arms["worse"].verdict == "ship"
    assert verdict.arms["other"].verdict == "do_not_ship"
    assert "not counted, waived until 2026-06-01: known." in verdict.arms["worse"].reasons[-1]
    with pytest.raises(ConfigurationError, match="the waiver of rule kl for arm worse expired on 2026-06-01"):
        judge(run, policy_of("gain: null\n" + waivers), today=date(2026, 6, 2))


def test_a_rule_that_is_not_required_may_stay_open_but_not_fail(run_of: RunOf, arm: Any, both: Any) -> None:
    relaxed = RULES.replace("margin: 8pp}\n- {id: kl", "margin: 1pp, required: false}\n- {id: kl")
    policy = parse_yaml_model(relaxed + "gain: null\n", Policy, name="t")
    verdict = judge(run_of(*both, arm("same"), arm("worse", wrong=0.4)), policy, today=TODAY)
    assert verdict.arms["same"].rules[4].outcome == "inconclusive"
    assert verdict.arms["same"].verdict == "ship"
    assert "undecided and not required" in verdict.arms["same"].reasons[0]
    assert verdict.arms["worse"].verdict == "do_not_ship"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"valid": False}, "was not given its load: 99 % of the lag"),
        ({"missing_requests": 2}, "2 requests of fp16 and c"),
    ],
)
def test_an_arm_whose_load_was_not_delivered_gets_no_verdict(
    run_of: RunOf, arm: Any, both: Any, changes: dict[str, Any], words: str
) -> None:
    verdict = judged(run_of(*both, arm("candidate", **changes), arm("same")))
    assert verdict.arms["candidate"].verdict == "invalid"
    assert words in verdict.arms["candidate"].reasons[0]
    assert verdict.arms["candidate"].rules == []
    assert verdict.arms["same"].verdict == "ship"
    assert verdict.exit_code == 3


@pytest.mark.parametrize(
    ("changes", "valid"),
    [
        ({"state": "interrupted", "phase": "quality"}, False),
        ({"state": "running", "phase": "replay"}, False),
        ({"state": "complete", "phase": "judge", "failure": "interrupted"}, True),
        ({"fidelity": []}, False),
    ],
)
def test_only_a_complete_run_is_judged(
    run_of: RunOf, arm: Any, both: Any, changes: dict[str, Any], valid: bool
) -> None:
    verdict = judged(run_of(*both, arm("same"), **changes))
    assert (verdict.verdict == "ship") == valid
    assert (verdict.verdict == "invalid") != valid


def test_an_invalid_baseline_spoils_every_arm(run_of: RunOf, arm: Any) -> None:
    verdict = judged(run_of(arm("fp16", "baseline", valid=False), arm("fp16-aa", "aa"), arm("a"), arm("b")))
    assert {found.verdict for found in verdict.arms.values()} == {"invalid"}


def test_incomparable_runs_are_errors_with_the_documented_code(run_of: RunOf, arm: Any, both: Any) -> None:
    with pytest.raises(BaselineError, match="baselines: none") as caught:
        judged(run_of(arm("a"), arm("b")))
    assert caught.value.exit_code == 5
    other = arm("int8", changes={"kv_dtype": "int8"})
    with pytest.raises(BaselineError, match="differ in kv_dtype \\(bf16 against int8\\)"):
        judged(run_of(*both, other))
    with pytest.raises(ConfigurationError, match="no candidate"):
        judged(run_of(*both))


@pytest.mark.parametrize("name", ["model", "tokenizer_fingerprint"])
def test_what_arms_of_one_model_share_is_noted_where_the_policy_lets_it_differ(
    run_of: RunOf, arm: Any, name: str
) -> None:
    def notes(own: str | None, other: str | None) -> list[str]:
        arms = arm("fp16", "baseline", changes={name: own}), arm("int8", changes={name: other})
        found = judged(run_of(*arms)).notes
        return [note for note in found if "differ in" in note]

    assert notes("a" * 64, "b") == [
        f"int8 and fp16 differ in {name} (b against aaaaaaaaaaaa...); policy test does not want it equal "
        "(must_match), so they were compared all the same."
    ]
    assert notes("a", "a") == []


def test_unlike_kernel_paths_are_told(run_of: RunOf, arm: Any, both: Any) -> None:
    other = arm("int8", changes={"kernel_paths": {"linear": "int8pack"}})
    assert "int8 took other kernel paths than fp16 for linear" in judged(run_of(*both, other)).notes[0]


def test_a_failure_that_many_rules_may_explain_is_not_confirmed(run_of: RunOf, arm: Any, both: Any) -> None:
    """One lower limit just above its margin among eight rules: Holm takes it back."""
    for wrong in (0.30, 0.27, 0.24, 0.22, 0.20):
        for seed in range(6):
            rule = judged(run_of(*both, arm("edge", wrong=wrong), seed=seed)).arms["edge"].rules[4]
            if (
                rule.p_value is not None
                and 0.01 < rule.p_value < 0.05
                and rule.estimate
                and rule.estimate > rule.margin
            ):
                assert rule.interval[0] is not None
                assert rule.interval[0] > rule.margin
                assert rule.outcome == "inconclusive"
                assert "Not confirmed over 8 rules at once" in rule.reason
                return
    pytest.fail("no seed gave an edge case")


def test_a_verdict_is_reproducible_and_survives_json(run_of: RunOf, arm: Any, both: Any) -> None:
    run = run_of(*both, arm("worse", failed=30))
    first, second = judged(run, GAIN), judged(run, GAIN)
    text = first.model_dump_json(by_alias=True)
    assert text == second.model_dump_json(by_alias=True)
    assert "Infinity" not in text
    assert "NaN" not in text
    assert Verdict.model_validate_json(text) == first


def test_paired_counts_stand_beside_binary_rules(run_of: RunOf, arm: Any, both: Any) -> None:
    rule = judged(run_of(*both, arm("worse", wrong=0.4))).arms["worse"].rules[4]
    assert sum(rule.counts.values()) == rule.n == 100
    assert rule.estimate == pytest.approx(
        (rule.counts["only_baseline_right"] - rule.counts["only_candidate_right"]) / 100
    )
    assert "exact McNemar p" in rule.method
