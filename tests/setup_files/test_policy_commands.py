"""`quantgate policy check` and `quantgate policy init`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.foreign_results.stored_runs import store
from tests.gate.conftest import SyntheticArm, build_run
from typer.testing import CliRunner, Result

from quantgate.cli.policy import policy_commands
from quantgate.gate.policy import Policy, load_policy
from quantgate.resources import bundled_root, find_policy
from quantgate.setup_files.policy_init import propose_policy
from quantgate.setup_files.policy_words import policy_words
from quantgate.store.run_folder import LoadedRun
from quantgate.validation import parse_yaml_model
from quantgate_engine.errors import BaselineError, ConfigurationError, QuantgateError

READY = sorted(path.stem for path in (bundled_root() / "suites" / "policies").glob("*.yaml"))
TWO_CLASSES = 400
"""Requests of a synthetic run: a quarter is `batch`, so that each class carries p95."""


def measured(requests: int = TWO_CLASSES, **arm: Any) -> LoadedRun:
    return build_run(SyntheticArm("fp16", "baseline", **arm), SyntheticArm("int8"), requests=requests)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(policy_commands, list(arguments))


def error_of(result: Result) -> QuantgateError:
    assert isinstance(result.exception, QuantgateError), result.output
    return result.exception


@pytest.mark.parametrize("name", READY)
def test_every_ready_policy_is_valid_and_can_be_put_into_words(name: str) -> None:
    result = invoke("check", name)
    assert result.exit_code == 0, result.output
    assert "A candidate may lose no more than this:" in result.stdout


def test_words_say_what_is_asked_for() -> None:
    policy = parse_yaml_model(
        """\
schema: quantgate.policy/1
name: p
slo: {interactive: {ttft_ms: 1000, tpot_ms: 100}, batch: {}}
rules:
  - {id: tail, metric: ttft_ms, statistic: p95, slo_class: interactive, margin: 20%}
  - {metric: correct, task: rag, margin: 3pp, required: false}
gain: {any: [{metric: weight_bytes, at_least: 25%}, {metric: tpot_ms, statistic: p50, at_least: 10%}]}
waivers: [{rule: tail, arm: int4, reason: known, expires: 2099-01-01}]
must_match: [model]
""",
        Policy,
        name="p.yaml",
    )
    assert policy_words(policy) == [
        "SLO of interactive requests: ttft_ms 1,000 ms, tpot_ms 100 ms",
        "SLO of batch requests: they must finish",
        "A candidate may lose no more than this:",
        "  tail: TTFT p95 of interactive requests, at most 20.0 % worse than the baseline; needs 72 requests or more",
        "  correct-rate-rag: task accuracy on rag, at most 3.00 pp worse; may stay undecided",
        "It must bring one of this:",
        "  weight memory: at least 25.0 % less than the baseline",
        "  TPOT p50: at least 10.0 % less than the baseline",
        "Certainty: 95% intervals; the smallest loss that a rule can find is told for a chance of 80%.",
        "The run must measure the baseline against itself before anything may ship.",
        "Waived for int4 until 2099-01-01: tail (known)",
        "Must be equal on all arms: model.",
    ]


def test_check_tells_errors_with_their_place(tmp_path: Path) -> None:
    broken = tmp_path / "p.yaml"
    broken.write_text("schema: quantgate.policy/1\nname: p\ngain: null\nrules:\n- {metric: ttft, margin: 10%}\n")
    error = error_of(invoke("check", str(broken)))
    assert str(error).startswith(f"{broken}, line 5, field rules.0.metric: there is no rule metric called 'ttft'")
    assert error.exit_code == 2


def test_check_refuses_a_waiver_that_has_run_out(tmp_path: Path) -> None:
    expired = tmp_path / "p.yaml"
    expired.write_text(
        "schema: quantgate.policy/1\nname: p\ngain: null\nrules: [{id: a, metric: ttft_ms, margin: 10%}]\n"
        "waivers: [{rule: a, arm: x, reason: r, expires: 2020-01-01}]\n"
    )
    assert "expired on 2020-01-01" in str(error_of(invoke("check", str(expired))))


def test_check_prints_one_json_document() -> None:
    document = json.loads(invoke("check", "chat", "--json").stdout)
    assert document["valid"] is True
    assert document["policy"]["name"] == "chat"
    assert document["sha256"] == load_policy(find_policy("chat")).sha256()


def test_init_writes_a_policy_that_check_accepts(tmp_path: Path) -> None:
    run = str(store(measured(), tmp_path / "run"))
    out = tmp_path / "mine.yaml"
    result = invoke("init", run, "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    assert invoke("check", str(out)).exit_code == 0
    policy, base = load_policy(out), load_policy(find_policy("mixed"))
    assert (policy.name, policy.rules, policy.gain) == ("mine", base.rules, base.gain)
    assert (policy.must_match, policy.aa, policy.confidence) == (base.must_match, base.aa, base.confidence)
    document = json.loads(result.stdout)
    assert document["base"] == "mixed"
    for name, limits in policy.slo_limits.items():
        for metric, limit in limits.items():
            assert document["slo"][name][metric]["limit"] == limit
    assert set(policy.slo) == {"interactive", "batch"}
    assert {"ttft_ms", "tpot_ms", "e2e_ms"} <= policy.slo["interactive"].limits().keys()
    text = out.read_text()
    assert "# SLO limits: fp16 of run run, upper 95% limit of the percentile x 1.2." in text
    assert "; 300 requests" in text


def test_the_same_run_can_be_named_by_the_option(tmp_path: Path) -> None:
    run = str(store(measured(), tmp_path / "run"))
    assert invoke("init", "--from-run", run, "--out", str(tmp_path / "a.yaml")).exit_code == 0
    assert "Name one run folder" in str(error_of(invoke("init")))
    assert "Name one run folder" in str(error_of(invoke("init", run, "--from-run", run)))


def test_init_replaces_a_file_only_when_told_to(tmp_path: Path) -> None:
    run = str(store(measured(), tmp_path / "run"))
    out = tmp_path / "policy.yaml"
    out.write_text("precious")
    assert "exists already" in str(error_of(invoke("init", run, "--out", str(out))))
    assert out.read_text() == "precious"
    assert invoke("init", run, "--out", str(out), "--force").exit_code == 0
    assert load_policy(out).name == "policy"
    assert "is a folder" in str(error_of(invoke("init", run, "--out", str(tmp_path), "--force")))


def test_a_class_that_is_too_small_is_told_in_the_file(tmp_path: Path) -> None:
    proposed = propose_policy(measured(requests=120), "p", base=None, headroom=1.2)
    assert "  batch: {}\n" in proposed.text
    assert "# ttft_ms: no limit; 30 requests carry no p95, 72 are needed" in proposed.text
    assert proposed.policy.slo["batch"].limits() == {}
    assert proposed.policy.slo["interactive"].ttft_ms is not None


def test_limits_out_of_a_closed_loop_say_so() -> None:
    run = measured()
    assert run.manifest.workload is not None
    closed = run.manifest.workload.model_copy(update={"load": "closed loop, 4 clients", "clients": 4})
    run = replace(run, manifest=run.manifest.model_copy(update={"workload": closed}))
    text = propose_policy(run, "p", base=None, headroom=1.2).text
    assert text.startswith("# SLO limits: fp16 of run run (closed loop, 4 clients), upper 95% limit")


def test_without_any_limit_the_file_is_written_and_says_how_many_requests_are_needed(tmp_path: Path) -> None:
    run, out = str(store(measured(requests=16), tmp_path / "run")), tmp_path / "mine.yaml"
    result = invoke("init", run, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "No class got a limit" in result.stderr
    assert invoke("check", str(out)).exit_code == 0
    assert set(load_policy(out).slo_limits) == {"batch", "interactive"}
    assert "    # ttft_ms: no limit; 12 requests carry no p95, 72 are needed\n" in out.read_text()


def test_waivers_and_other_demands_of_the_base_are_kept(tmp_path: Path) -> None:
    base = tmp_path / "base.yaml"
    base.write_text(
        "schema: quantgate.policy/1\nname: base\ndescription: 'colon: here'\nconfidence: 0.9\nresamples: 2000\n"
        "gain: {all: [{metric: weight_bytes, at_least: 25%}]}\naa: {required: false}\n"
        "rules: [{id: a, metric: ttft_ms, margin: 10%, required: false}, {metric: failure_rate, margin: 0.01}]\n"
        "waivers: [{rule: a, arm: x, reason: 'why: so', expires: 2099-01-01}]\n"
    )
    proposed = propose_policy(measured(), "p", base=str(base), headroom=1.2).policy
    original = load_policy(base)
    assert proposed.model_copy(update={"name": "base", "slo": {}}) == original


def test_a_base_about_other_classes_is_refused() -> None:
    run = measured()
    rows = [row | {"slo_class": "bulk"} for row in run.requests.to_pylist()]
    run = LoadedRun(
        run.manifest, type(run.requests).from_pylist(rows, schema=run.requests.schema), run.steps, run.quality
    )
    with pytest.raises(
        ConfigurationError, match="rules about interactive requests, but the traffic of run run has only bulk"
    ):
        propose_policy(run, "p", base="chat", headroom=1.2)
    assert set(propose_policy(run, "p", base="ci", headroom=1.2).policy.slo) == {"bulk"}


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (build_run(SyntheticArm("a"), requests=100), "has baselines: none; expected exactly one"),
        (measured(valid=False), "was not given its load"),
        (build_run(SyntheticArm("a", "baseline"), requests=100, fidelity=[]), "ended before arm a had been replayed"),
    ],
)
def test_a_baseline_that_cannot_be_trusted_gives_no_limits(run: LoadedRun, sentence: str) -> None:
    with pytest.raises(BaselineError, match=sentence):
        propose_policy(run, "p", base="ci", headroom=1.2)
