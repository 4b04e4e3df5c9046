"""Servers as the arms of a run: launched, judged as the same arms are in this process, and refused where unlike."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.tiny_suite import write_tiny_suite
from tests.engine.byte_tokenizer import END, VOCABULARY, save_byte_tokenizer
from tests.engine.tiny_model import save_tiny_model

from quantgate.cli.main import main
from quantgate.resources import bundled_root
from quantgate.store.run_folder import LoadedRun, load_run

DEAD = ("--baseline", "http://127.0.0.1:9", "--candidate", "http://127.0.0.1:9")
POLICY = """\
schema: quantgate.policy/1
name: tiny
rules:
  - {id: failures, metric: failure_rate, margin: 40pp}
  - {id: kl, metric: kl_mean, margin: 1nats}
  - {id: top1, metric: top1_disagreement, margin: 90pp}
gain: {any: [{metric: weight_bytes, at_least: 10%}]}
aa: {required: false}
must_match: [target, model, tokenizer_fingerprint]
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(model: Path, scheme: str, *, name: str = "tiny") -> str:
    words = [
        sys.executable, "-m", "quantgate", "serve", str(model), "--scheme", scheme, "--port", "{port}",
        "--threads", "1", "--served-model-name", name, "--max-active-requests", "4", "--max-step-tokens", "32",
        "--max-context-tokens", "128",
    ]  # fmt: skip
    return " ".join(words)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_tiny_suite(tmp_path_factory.mktemp("served"))
    (path.parent / "policy.yaml").write_text(POLICY)
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, Path]]:
    def invoke(*arguments: str) -> tuple[int, Path]:
        monkeypatch.setattr(sys, "argv", ["quantgate", "run", *arguments, "--results", str(tmp_path / "results")])
        with pytest.raises(SystemExit) as ended:
            main()
        folders = sorted((tmp_path / "results").iterdir()) if (tmp_path / "results").exists() else []
        return int(str(ended.value.code)), folders[-1] if folders else tmp_path

    return invoke


def server_flags(suite: Path, *more: str, candidate_scheme: str = "int8-w8a16") -> list[str]:
    model = suite.parent / "model"
    return [
        "--baseline", f"http://127.0.0.1:{free_port()}", "--launch-baseline", serve(model, "fp32"),
        "--candidate", f"http://127.0.0.1:{free_port()}", "--launch-candidate", serve(model, candidate_scheme),
        "--log", str(suite.parent / "traffic.jsonl"), "--policy", str(suite.parent / "policy.yaml"),
        "--tokenizer", str(model), *more,
    ]  # fmt: skip


def served_suite(suite: Path, **changes: Any) -> Path:
    """The in-process suite with a server in the place of each engine."""
    document = yaml.safe_load(suite.read_text())
    model = suite.parent / "model"
    document["tokenizer"] = str(model)
    document["arms"] = [
        {
            "target": "openai", "id": "fp32", "role": "baseline", "url": f"http://127.0.0.1:{free_port()}",
            "launch": {"command": serve(model, "fp32")},
        },
        {
            "target": "openai", "id": "candidate", "url": f"http://127.0.0.1:{free_port()}",
            "launch": {"command": serve(model, "int8-w8a16")},
        },
    ]  # fmt: skip
    path = suite.parent / "served.yaml"
    path.write_text(yaml.safe_dump(document | changes))
    return path


def quality(run: LoadedRun) -> dict[tuple[str, str, str], float]:
    columns = ("arm_id", "item_id", "metric", "value")
    rows = zip(*(run.quality[name].to_pylist() for name in columns), strict=True)
    return {(arm, item, metric): value for arm, item, metric, value in rows if arm == "candidate"}


def test_servers_get_the_verdict_that_the_same_arms_get_in_this_process(suite, run, capsys):
    here_code, here_folder = run(str(suite))
    code, folder = run(str(served_suite(suite)))
    here, there = load_run(here_folder), load_run(folder)
    verdicts = [json.loads((path / "verdict.json").read_text()) for path in (here_folder, folder)]

    assert code == here_code == 0
    assert [verdict["arms"]["candidate"]["verdict"] for verdict in verdicts] == ["ship", "ship"]
    # Whole logits cross the wire, and the baseline's tokens are the same: the comparison is the same number.
    assert quality(there) == pytest.approx(quality(here), abs=1e-9)
    assert there.requests["output_token_ids"].to_pylist() == here.requests["output_token_ids"].to_pylist()
    assert set(there.requests["counted_by"].to_pylist()) == {"ids"}
    assert {arm.scheme for arm in there.manifest.arms} == {"fp32", "int8-w8a16"}
    assert all(arm.peak_memory_bytes and arm.load_seconds for arm in there.manifest.arms)
    assert there.server_metrics.num_rows > 0
    assert {status.status for status in there.manifest.quality_tiers} == {"exact"}
    assert {path.name for path in folder.glob("server-*.log")} == {"server-fp32.log", "server-candidate.log"}


def test_one_at_a_time_whole_passes_take_turns_and_no_text_is_kept(suite, run, capsys):
    passes = {"trace": "traffic.jsonl", "blocks": 2, "passes": 2, "lag_limit_ms": 5000}
    code, folder = run(str(served_suite(suite, device="one_at_a_time", aa=False, workload=passes)), "--no-text")
    stored = load_run(folder)
    assert code == 0
    started = {
        (row["pass_index"], row["arm_id"]): row["scheduled_ns"]
        for row in reversed(stored.requests.select(["pass_index", "arm_id", "scheduled_ns"]).to_pylist())
    }
    assert sorted(started, key=started.__getitem__) == [(0, "fp32"), (0, "candidate"), (1, "candidate"), (1, "fp32")]
    assert not list(folder.glob("*.log"))
    assert stored.requests["prompt_text"].null_count == stored.requests.num_rows


def test_flags_alone_judge_servers_under_a_log(suite, run, capsys):
    code, folder = run(*server_flags(suite, "--limit", "3", "--other-parts", "drop"))
    stored = load_run(folder)
    error = capsys.readouterr().err
    # The bundled tasks do not fit the tiny model's context: each tier says how far it came, and nobody ships on it.
    assert code in (0, 4), error
    assert stored.requests.num_rows == 3 * 3
    assert stored.manifest.suite is not None
    assert stored.manifest.suite["workload"]["other_parts"] == "drop"
    assert stored.manifest.suite["workload"]["output_lengths"] == "auto"
    assert stored.manifest.workload is not None
    assert stored.manifest.workload.blocks == 3
    assert "blocks: 3, one for each session or single request of the traffic" in error
    assert stored.manifest.workload.output_lengths == "forced"


def test_arms_that_serve_unlike_models_are_refused_before_anything_is_replayed(suite, run, capsys):
    document = yaml.safe_load(served_suite(suite).read_text())
    document["arms"][1]["launch"]["command"] = serve(suite.parent / "model", "int8-w8a16", name="another")
    path = suite.parent / "unlike.yaml"
    path.write_text(yaml.safe_dump(document))
    code, folder = run(str(path))
    error = capsys.readouterr().err
    assert code == 5
    assert "differ in model (tiny against another)" in error
    assert not list(folder.glob("run.json"))


def test_arms_with_unlike_tokenizers_are_refused(suite, run, tmp_path, capsys):
    other = tmp_path / "other"
    save_tiny_model(other, vocab_size=VOCABULARY, eos_token_id=END, bos_token_id=None)
    save_byte_tokenizer(other)
    document = yaml.safe_load(served_suite(suite).read_text())
    document["tokenizer"] = None
    document["arms"][1]["launch"]["command"] = serve(other, "int8-w8a16")
    path = suite.parent / "tokenizers.yaml"
    path.write_text(yaml.safe_dump(document))
    code, _ = run(str(path))
    assert code == 5
    assert "differ in tokenizer_fingerprint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--baseline", "http://127.0.0.1:9"], "--baseline URL, --candidate URL and --log FILE together"),
        (["--log", "access.jsonl"], "--log needs --baseline and --candidate"),
        (
            ["--baseline", "fp16:8000", "--candidate", "http://a", "--log", "x"],
            "--baseline: 'fp16:8000' is no http or https URL",
        ),
        ([*DEAD, "--log", "x"], "x: there is no such trace file"),
        ([*DEAD, "--log", str(bundled_root() / "replay_samples" / "quick.jsonl")], "127.0.0.1:9"),
    ],
)
def test_bad_flags_and_dead_urls_are_one_sentence(flags, sentence, run, capsys):
    code, folder = run(*flags)
    error = capsys.readouterr().err
    assert code in (2, 3)
    assert sentence in error
    assert "Traceback" not in error
    assert not list(folder.glob("run.json"))


def test_several_load_processes_send_what_one_sends(suite, run, capsys):
    workload = {"trace": "traffic.jsonl", "blocks": 2, "lag_limit_ms": 5000, "load_processes": 2}
    code, folder = run(str(served_suite(suite, aa=False, workload=workload)))
    stored = load_run(folder)
    assert code == 0
    assert stored.manifest.suite["workload"]["load_processes"] == 2
    certificates = stored.manifest.fidelity
    assert {certificate.arm_id for certificate in certificates} == {"fp32", "candidate"}
    assert all(c.valid and c.requests_delivered == c.requests_intended > 0 for c in certificates)
    assert set(stored.requests["status"].to_pylist()) == {"finished"}
    assert set(stored.requests["counted_by"].to_pylist()) == {"ids"}
