"""`quantgate run` from the outside: files, exit codes, interrupts in every phase, a full disk."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.tiny_suite import POLICY, write_tiny_suite

from quantgate.cli.main import run_command
from quantgate.run import arms as run_arms_module
from quantgate.run import before_loading as before_loading_module
from quantgate.run import run_suite as run_suite_module
from quantgate.run import session as session_module
from quantgate.store import disk_reserve, table_file
from quantgate.store.run_folder import load_run
from quantgate_engine.errors import ConfigurationError

Invoke = Callable[..., int]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_suite(tmp_path_factory.mktemp("tiny-suite"))


@pytest.fixture
def quantgate(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    def invoke(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["quantgate", *arguments])
        return run_command()

    return invoke


def unwrapped(printed: str) -> str:
    return " ".join(printed.split())


def only_folder(results: Path) -> Path:
    [folder] = results.iterdir()
    return folder


def test_a_whole_run_leaves_a_complete_folder_and_its_verdict_as_exit_code(suite, quantgate, tmp_path, capsys):
    code = quantgate("run", str(suite), "--results", str(tmp_path / "results"), "--json")
    printed = json.loads(capsys.readouterr().out)
    folder = only_folder(tmp_path / "results")
    run = load_run(folder)

    assert code == printed["exit_code"] == 0
    assert printed == json.loads((folder / "verdict.json").read_text())
    assert printed["arms"]["candidate"]["verdict"] == "ship"
    assert run.manifest.state == "complete"
    assert run.manifest.phase == "done"
    assert "<html" in (folder / "report.html").read_text()
    assert {path.name for path in folder.iterdir()} == {
        "run.json", "requests.parquet", "steps.parquet", "quality.parquet", "verdict.json", "report.html",
    }  # fmt: skip


def test_the_machine_is_measured_before_the_arms_and_their_throughputs_are_held_against_it(
    suite, quantgate, tmp_path, monkeypatch
):
    order = []
    measure, open_arm = before_loading_module.device_limits, run_arms_module.open_bundled_arm
    monkeypatch.setattr(
        before_loading_module, "device_limits", lambda *given: (order.append("measured"), measure(*given))[1]
    )
    monkeypatch.setattr(
        run_arms_module,
        "open_bundled_arm",
        lambda *given, **named: (order.append("opened"), open_arm(*given, **named))[1],
    )
    quantgate("run", str(suite), "--results", str(tmp_path / "results"))
    folder = only_folder(tmp_path / "results")
    manifest = load_run(folder).manifest
    assert order == ["measured", "opened", "opened"]
    assert manifest.device_limits is not None
    assert manifest.device_limits.threads == manifest.environment.threads
    for arm in manifest.arms:
        assert arm.step_work is not None
        assert arm.step_work.linear_bytes == arm.linear_weight_bytes
        assert arm.step_work.linear_width == arm.step_work.width
    assert "of it reached" in (folder / "report.html").read_text()


def test_every_arm_is_given_the_same_requests_and_answers_in_full(suite, quantgate, tmp_path):
    quantgate("run", str(suite), "--results", str(tmp_path / "results"))
    requests = load_run(only_folder(tmp_path / "results")).requests.to_pylist()
    by_arm = {
        arm: {
            (row["request_id"], row["prompt_tokens"], row["output_tokens"]) for row in requests if row["arm_id"] == arm
        }
        for arm in ("fp32", "fp32-aa", "candidate")
    }
    assert by_arm["fp32"] == by_arm["fp32-aa"] == by_arm["candidate"]
    assert len(by_arm["fp32"]) == 16
    assert all(row["output_tokens"] == row["requested_output_tokens"] for row in requests)


def test_the_same_weights_twice_have_no_divergence_and_planted_noise_has(suite, quantgate, tmp_path):
    quantgate("run", str(suite), "--results", str(tmp_path / "planted"), "--plant-weight-noise", "candidate=0.5")
    run = load_run(only_folder(tmp_path / "planted"))
    kl = {
        arm: [row["value"] for row in run.quality.to_pylist() if row["arm_id"] == arm and row["metric"] == "kl"]
        for arm in ("fp32-aa", "candidate")
    }
    assert max(kl["fp32-aa"]) < 1e-6
    assert min(kl["candidate"]) > 1e-3
    assert run.manifest.planted == {"candidate": 0.5}


def test_no_text_keeps_prompts_and_answers_out_of_every_file(suite, quantgate, tmp_path):
    quantgate("run", str(suite), "--results", str(tmp_path / "results"), "--no-text")
    run = load_run(only_folder(tmp_path / "results"))
    assert run.requests["output_text"].null_count == run.requests.num_rows
    assert all(tokens == [] for tokens in run.requests["output_token_ids"].to_pylist())


@pytest.mark.parametrize(
    ("module", "function", "phase"),
    [
        (session_module, "certificates", "replay"),
        (run_suite_module, "evaluation", "quality"),
    ],
)
def test_an_interrupt_keeps_what_was_measured_and_reports_it(
    module, function, phase, suite, quantgate, tmp_path, monkeypatch, capsys
):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, function, interrupt)
    assert quantgate("run", str(suite), "--results", str(tmp_path / "results")) == 130
    folder = only_folder(tmp_path / "results")
    told = unwrapped(capsys.readouterr().err)
    assert f"What was measured so far is kept in {folder}. quantgate: Interrupted." in told
    run = load_run(folder)
    assert run.manifest.state == "interrupted"
    assert run.manifest.phase == phase
    assert run.requests.num_rows == 3 * 16
    assert "interrupted" in (folder / "report.html").read_text().lower()
    assert not (folder / "verdict.json").exists()
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize(
    ("broken", "phase", "code", "failure"),
    [
        ((run_suite_module, "judge", KeyboardInterrupt()), "judge", 130, "interrupted"),
        ((run_suite_module, "judge", ConfigurationError("The waiver expired.")), "judge", 2, "The waiver expired."),
        ((run_suite_module, "render_report", ValueError("no arrays")), "report", 3, "ValueError: no arrays"),
    ],
)
def test_what_befalls_verdict_or_report_costs_no_measurement(
    broken, phase, code, failure, suite, quantgate, tmp_path, monkeypatch, capsys
):
    module, function, error = broken

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(module, function, fail)
        assert quantgate("run", str(suite), "--results", str(tmp_path / "results")) == code
    folder = only_folder(tmp_path / "results")
    assert f"The run itself is complete; go on with: quantgate gate {folder}" in unwrapped(capsys.readouterr().err)
    manifest = load_run(folder).manifest
    assert (manifest.state, manifest.phase, manifest.failure) == ("complete", phase, failure)
    assert ("not judged" in (folder / "report.html").read_text()) == (phase == "judge")
    assert not list(folder.glob(".*"))

    assert quantgate("gate", str(folder)) == 0
    assert json.loads((folder / "verdict.json").read_text())["verdict"] == "ship"


def test_an_interrupt_while_loading_leaves_nothing(suite, quantgate, tmp_path, monkeypatch, capsys):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_arms_module, "open_bundled_arm", interrupt)
    assert quantgate("run", str(suite), "--results", str(tmp_path / "results")) == 130
    assert not (tmp_path / "results").exists()
    told = capsys.readouterr().err
    assert "quantgate: Interrupted." in told
    assert "kept" not in told


def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(suite, quantgate, tmp_path, monkeypatch, capsys):
    reserved = []

    def full(*_: object, **__: object) -> None:
        reserved.extend(path.stat().st_size for path in only_folder(tmp_path / "results").glob(".reserve"))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(table_file.pq, "write_table", full)
    assert quantgate("run", str(suite), "--results", str(tmp_path / "results")) == 3
    error = capsys.readouterr().err
    assert "the disk is full" in error
    assert "No request is kept; how the run ended is in" in unwrapped(error)
    assert "Traceback" not in error
    folder = only_folder(tmp_path / "results")
    assert reserved == [128 * 1024]
    manifest = load_run(folder).manifest
    assert manifest.state == "failed"
    assert "the disk is full" in manifest.failure
    assert not list(folder.glob("*.parquet"))
    assert not list(folder.glob(".*"))


def test_a_disk_without_space_for_the_last_words_is_told_before_the_replay(
    suite, quantgate, tmp_path, monkeypatch, capsys
):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk_reserve.os, "posix_fallocate", full)
    assert quantgate("run", str(suite), "--results", str(tmp_path / "results")) == 3
    error = capsys.readouterr().err
    assert "the disk is full" in error
    assert "replay: started" not in error
    assert not list((tmp_path / "results").iterdir())


def test_an_unexpected_error_is_one_sentence_with_exit_code_3(suite, quantgate, tmp_path, monkeypatch, capsys):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(run_suite_module, "judge", broken)
    assert quantgate("run", str(suite), "--results", str(tmp_path / "results")) == 3
    error = capsys.readouterr().err
    assert "Unexpected ZeroDivisionError: division by zero." in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("seed: 7", "sede: 7"), ".yaml, line 4, field sede: unknown key, did you mean seed?"),
        (("seed: 7", "seed: seven"), ".yaml, line 4, field seed: expected an integer, got 'seven'"),
        (("role: baseline", "role: candidate"), "expected exactly one arm with role baseline, got 0"),
        (("id: candidate", "id: fp32"), "two arms are called 'fp32'"),
        (("id: candidate", "id: fp32-aa"), "that name is the A/A pair's"),
        (("trace: traffic.jsonl", "trace: nothing.jsonl"), "nothing.jsonl"),
        (("policy: policy.yaml", "policy: nowhere"), "policy 'nowhere' is neither a file nor a bundled policy"),
        (("scheme: int8-w8a16", "scheme: int3"), "int3"),
        (("max_context_tokens: 128", "max_context_tokens: 6"), "requests do not fit the context of 6 tokens"),
        (("max_context_tokens: 128", "max_context_tokens: 9999"), "max_context_tokens is 9999; expected at most "),
        (("blocks: 2", "transforms: [{kind: window, start_s: 99, length_s: 1}]"), "leaves none of 16 requests"),
    ],
)
def test_a_broken_suite_is_one_sentence_with_exit_code_2(change, sentence, suite, quantgate, tmp_path, capsys):
    broken = suite.parent / f"broken-{abs(hash(change))}.yaml"
    broken.write_text(suite.read_text().replace(*change))
    assert quantgate("run", str(broken), "--results", str(tmp_path / "results")) == 2
    error = unwrapped(capsys.readouterr().err)
    assert sentence in error
    assert "Traceback" not in error
    assert "load: started" not in error
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("rule", "waivers", "sentence"),
    [
        (
            "{id: failures, ",
            "[{rule: failures, arm: candidate, reason: why, expires: 2020-01-01}]",
            "the waiver of rule failures for arm candidate expired on 2020-01-01 (why)",
        ),
        (
            "{id: failures, ",
            "[{rule: failures, arm: nosuch, reason: why, expires: 2999-01-01}]",
            "the waiver of rule failures is about the candidate arm 'nosuch'",
        ),
        (
            "{id: failures, slo_class: intractive, ",
            "[]",
            "rule failures is about the SLO class 'intractive', which this run does not have",
        ),
    ],
)
def test_a_policy_that_could_not_be_applied_is_refused_before_anything_is_loaded(
    rule, waivers, sentence, suite, quantgate, tmp_path, capsys
):
    policy = tmp_path / "unfit.yaml"
    policy.write_text(POLICY.replace("{id: failures, ", rule) + f"waivers: {waivers}\n")
    assert quantgate("run", str(suite), "--policy", str(policy), "--results", str(tmp_path / "results")) == 2
    error = unwrapped(capsys.readouterr().err)
    assert sentence in error
    assert "load: started" not in error
    assert not (tmp_path / "results").exists()


def test_results_that_cannot_be_written_are_told_before_anything_is_loaded(suite, quantgate, tmp_path, capsys):
    occupied = tmp_path / "occupied"
    occupied.touch()
    for results in (occupied, occupied / "below"):
        assert quantgate("run", str(suite), "--results", str(results)) == 2
        error = unwrapped(capsys.readouterr().err)
        assert f"Cannot write results under {occupied}: it is not a folder; choose another one." in error
        assert "load: started" not in error


def test_a_broken_policy_is_one_sentence_with_exit_code_2(suite, quantgate, tmp_path, capsys):
    policy = tmp_path / "broken.yaml"
    policy.write_text(POLICY.replace("margin: 40pp", "margin: lots"))
    assert quantgate("run", str(suite), "--policy", str(policy), "--results", str(tmp_path / "results")) == 2
    assert "broken.yaml, line 4" in " ".join(capsys.readouterr().err.split())


def test_a_malformed_trace_line_is_named_by_file_line_and_field(suite, quantgate, tmp_path, capsys):
    trace = suite.parent / "malformed.jsonl"
    trace.write_text((suite.parent / "traffic.jsonl").read_text().replace('"max_tokens": 4', '"max_tokens": "ten"', 1))
    broken = suite.parent / "malformed-suite.yaml"
    broken.write_text(suite.read_text().replace("traffic.jsonl", trace.name))
    assert quantgate("run", str(broken), "--results", str(tmp_path / "results")) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "malformed.jsonl, line 2, field max_tokens: expected an integer" in error
    assert not (tmp_path / "results").exists()


def test_a_missing_model_says_what_would_do(suite, quantgate, tmp_path, capsys):
    code = quantgate("run", str(suite), "--model", "no-such-model", "--results", str(tmp_path / "results"))
    assert code == 2
    assert "expected one of smollm2-135m-instruct" in " ".join(capsys.readouterr().err.split())
