"""Policies: the ready ones load, broken ones are told by file, line and field."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from quantgate.gate.policy import Policy, load_policy, policy_json_schema, stored_policy
from quantgate.resources import bundled_root
from quantgate.validation import parse_yaml_model
from quantgate_engine.errors import ConfigurationError

READY = sorted((bundled_root() / "suites" / "policies").glob("*.yaml"))
HEAD = "schema: quantgate.policy/1\nname: p\ngain: null\n"
RULE = "rules:\n- {metric: ttft_ms, statistic: p95, margin: 10%}\n"


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_ready_policies_load_and_are_named_after_their_file(path: Path) -> None:
    policy = load_policy(path)
    assert policy.name == path.stem
    # The self-check's candidate is the baseline once more, so that a third run of it would add nothing.
    assert policy.aa.required == (path.stem != "self-check")


def test_all_ready_policies_are_there() -> None:
    assert [path.stem for path in READY] == ["batch", "chat", "ci", "mixed", "self-check"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "p.yaml, line 1, field rules: this key is missing; add it."),
        ("rules: []\n", "p.yaml, line 4, field rules: expected at least 1 item, got a list of 0 items."),
        ("rules:\n- {metric: ttft, margin: 10%}\n", "p.yaml, line 5, field rules.0.metric: there is no rule metric"),
        ("rules:\n- metric: ttft_ms\n", "p.yaml, line 5, field rules.0.margin: this key is missing; add it."),
        ("rules:\n- metric: ttft_ms\n  margin: 2pp\n", "p.yaml, line 5, field rules.0: margin of ttft_ms"),
        ("rules:\n- metric: ttft_ms\n  margin: [2]\n", "p.yaml, line 6, field rules.0.margin: expected text or "),
        ("rules:\n- {metric: kl_mean, statistic: p95, margin: 1}\n", "p.yaml, line 5, field rules.0: kl_mean has"),
        ("rules:\n- {metric: ttft_ms, statistic: p9, margin: 1}\n", "p.yaml, line 5, field rules.0.statistic: exp"),
        ("rules:\n- {metric: failure_rate, margin: 200pp}\n", "p.yaml, line 5, field rules.0: margin of failure_rate"),
        ("rules:\n- {metric: top1_disagreement, margin: 1}\n", "p.yaml, line 5, field rules.0: margin of top1_disag"),
        ("rules:\n- {metric: ttft_ms, margin: 1, task: rag}\n", "p.yaml, line 5, field rules.0: ttft_ms is not"),
        ("rules:\n- {metric: correct, margin: 0.1, slo_class: a}\n", "p.yaml, line 5, field rules.0: correct is"),
        (RULE + "confidence: high\n", "p.yaml, line 6, field confidence: expected a number, got 'high'."),
        (RULE + "confidence: '0.95'\n", "p.yaml, line 6, field confidence: expected a number, got '0.95'."),
        (RULE + "confidence: 1\n", "p.yaml, line 6, field confidence: expected a value below 1"),
        (RULE + "marigns: 1\n", "p.yaml, line 6, field marigns: unknown key"),
        (RULE + "slo: {a: {ttft: 3}}\n", "p.yaml, line 6, field slo.a.ttft: unknown key, did you mean ttft_ms?"),
        (RULE + "slo: {a: {ttft_ms: -3}}\n", "p.yaml, line 6, field slo.a.ttft_ms: expected a value above 0"),
        (RULE + RULE.removeprefix("rules:\n"), "p.yaml, line 5, field rules: two rules are called 'ttft_ms-p95'; give"),
        ("rules:\n- {metric: slo_attainment, margin: 1pp}\n", "p.yaml, line 5, field rules: slo_attainment"),
        (RULE + "waivers:\n- {rule: x, arm: a, reason: r, expires: 2027-01-01}\n", "p.yaml, line 7, field waivers: "),
        (RULE + "waivers:\n- {rule: x, arm: a, reason: r, expires: soon}\n", "p.yaml, line 7, field waivers.0.expires"),
        (RULE + "must_match: [cpu]\n", "p.yaml, line 6, field must_match.0: expected 'target', 'model'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_yaml_model(HEAD + text, Policy, name="p.yaml")
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("gain", "sentence"),
    [
        ("{any: [{metric: weight_bytes, at_least: 25}]}", "field gain.any.0.at_least: expected text, got 25"),
        ("{any: [{metric: weight_bytes, at_least: 25ms}]}", "field gain.any.0.at_least: expected a relative margin"),
        (
            "{any: [{metric: weights, at_least: 25%}]}",
            "field gain.any.0.metric: there is no gain metric called 'weights'",
        ),
        ("{any: [], all: []}", "field gain.any: expected at least 1 item"),
        ("{}", "field gain: expected exactly one of the keys any and all"),
        (
            "{all: [{metric: weight_bytes, slo_class: a, at_least: 2%}]}",
            "field gain.all.0: weight_bytes is not measured",
        ),
        ("{all: [{metric: weight_bytes, statistic: p50, at_least: 2%}]}", "field gain.all.0: weight_bytes has no stat"),
    ],
)
def test_a_wrong_gain_is_told_with_its_place(gain: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_yaml_model(HEAD.replace("gain: null", f"gain: {gain}") + RULE, Policy, name="p.yaml")
    assert str(caught.value).startswith(f"p.yaml, line 3, {sentence}")


def test_the_hash_follows_what_is_said_and_not_how_it_is_laid_out() -> None:
    first = parse_yaml_model(HEAD + RULE, Policy, name="p")
    same = parse_yaml_model("# a comment\n" + RULE + HEAD, Policy, name="p")
    other = parse_yaml_model(HEAD + RULE.replace("10%", "11%"), Policy, name="p")
    assert first.sha256() == same.sha256()
    assert first.sha256() != other.sha256()


def test_a_policy_survives_its_manifest() -> None:
    waiver = "waivers:\n- {rule: ttft_ms-p95, arm: a, reason: r, expires: 2027-01-01}\n"
    policy = parse_yaml_model(HEAD + RULE + waiver, Policy, name="p")
    document = json.loads(json.dumps(policy.model_dump(mode="json", by_alias=True)))
    assert stored_policy(document, "run.json") == policy
    assert policy.waivers[0].expires == date(2027, 1, 1)
    with pytest.raises(ConfigurationError, match=r"run\.json, field name: expected text, got 3"):
        stored_policy(document | {"name": 3}, "run.json")


def test_the_json_schema_accepts_the_ready_policies_and_refuses_an_unknown_key() -> None:
    validator = Draft202012Validator(policy_json_schema())
    for path in READY:
        validator.validate(load_policy(path).model_dump(mode="json", by_alias=True))
    assert not validator.is_valid({"schema": "quantgate.policy/1", "name": "p", "gain": None, "rules": [], "x": 1})
