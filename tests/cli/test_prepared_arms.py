"""Arms whose scheme names a recipe: their checkpoints are made before anything is measured, and the run says how."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.cli.tiny_suite import write_tiny_suite

from quantgate.cli.main import run_command
from quantgate.engine_settings.engine import EngineSettings
from quantgate.engine_settings.loading import load_engine
from quantgate.progress import ProgressReporter
from quantgate.quantizing.evaluation_passages import evaluation_passages
from quantgate_engine.quant.calibration.passages import passages_sha256
from quantgate_engine.quant.calibration.settings import CalibrationSettings

SCHEME = "int4-g32-gptq"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Calibrated on little, so that a checkpoint takes no second. Compiled kernels stay where they are."""
    monkeypatch.setattr("quantgate_engine.prepared_model.cache_root", lambda: tmp_path / "cache")
    monkeypatch.setattr(
        "quantgate_engine.prepared_model.CalibrationSettings", lambda: CalibrationSettings(sequences=3, tokens=24)
    )
    return write_tiny_suite(tmp_path)


def quantgate(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["quantgate", *map(str, arguments)])
    return run_command()


def arms_of(results: Path) -> dict[str, dict[str, Any]]:
    [folder] = results.iterdir()
    return {arm["arm_id"]: arm for arm in json.loads((folder / "run.json").read_text())["arms"]}


def test_a_suites_arm_may_name_a_recipe(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.write_text(suite.read_text().replace("scheme: int8-w8a16", f"scheme: {SCHEME}"))
    assert quantgate(monkeypatch, "run", suite, "--results", tmp_path / "results", "--json") == 0
    told = capsys.readouterr().err
    assert told.index("quantize: done") < told.index("load: started") < told.index("replay: started")
    arm = arms_of(tmp_path / "results")["candidate"]
    assert (arm["scheme"], arm["model"]) == (SCHEME, "model")
    assert arm["provenance"]["recipe"]["rounding"] == "gptq"
    assert arm["provenance"]["recipe"]["calibration"] == {"sequences": 3, "tokens": 24, "seed": 0}
    assert len(arm["provenance"]["calibration_sha256"]) == len(arm["provenance"]["forbidden_sha256"]) == 64
    [folder] = (tmp_path / "results").iterdir()
    page = (folder / "report.html").read_text()
    assert arm["provenance"]["calibration_sha256"] in page
    assert "GPTQ" in page


def test_what_is_wrong_with_another_arm_is_told_before_a_checkpoint_is_made(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schemes = f"fp32,{SCHEME},int4-g32+*.dwn_proj=int8-w8a16"
    assert quantgate(monkeypatch, "run", suite, "--schemes", schemes, "--results", tmp_path / "results") == 2
    told = capsys.readouterr().err
    assert "A map of schemes names '*.dwn_proj', which fits no layer of this model" in " ".join(told.split())
    assert "quantize" not in told


def test_builds_are_named_on_the_command_line(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("run", suite, "--schemes", f"fp32, {SCHEME},int4-g32", "--results")
    assert quantgate(monkeypatch, *arguments, tmp_path / "results", "--json") == 0
    arms = arms_of(tmp_path / "results")
    assert [(arm["scheme"], arm["role"]) for arm in arms.values()] == [
        ("fp32", "baseline"), (SCHEME, "candidate"), ("int4-g32", "candidate"), ("fp32", "aa"),
    ]  # fmt: skip
    capsys.readouterr()
    assert quantgate(monkeypatch, *arguments, tmp_path / "again", "--json") == 0
    assert "quantize" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("schemes", "words"),
    [
        ("fp32", "--schemes: expected at least 2 items"),
        (",", "--schemes: expected at least 2 items"),
        ("fp32,int4-g32,int4-g32", "--schemes: two arms are called 'int4-g32'"),
        ("fp32,int4-g32-gpt", "Unknown scheme 'int4-g32-gpt'; expected one of"),
        (f"fp32,{SCHEME}+lm_head=int8-w8a16", "quantizes a whole model before it is loaded and has no place in a map"),
        (f"fp32,{SCHEME},int4-g128-gptq", "Groups of 128 do not divide the rows of down_proj"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(
    schemes: str,
    words: str,
    suite: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert quantgate(monkeypatch, "run", suite, "--schemes", schemes, "--results", tmp_path / "results") == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "cache" / "quantized").exists()


def test_servers_have_no_schemes(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = ("--baseline", "http://127.0.0.1:1", "--candidate", "http://127.0.0.1:2", "--log", suite)
    assert quantgate(monkeypatch, "run", *servers, "--schemes", "fp16,int4-g32") == 2
    assert "servers have their own precisions" in " ".join(capsys.readouterr().err.split())


def test_a_full_disk_ends_a_run_before_its_traffic(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quantgate_engine.quant.export.layer_store.save_tensors", full)
    assert quantgate(monkeypatch, "run", suite, "--schemes", f"fp32,{SCHEME}", "--results", tmp_path / "results") == 3
    told = " ".join(capsys.readouterr().err.split())
    assert (
        "there is no room on the disk (No space left on device) and finished layers are kept for the next try" in told
    )
    assert "set QUANTGATE_CACHE to a folder on another disk" in told
    assert not list((tmp_path / "results").glob("*"))


def test_a_trace_is_replayed_on_a_prepared_build(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, results = suite.parent / "traffic.jsonl", tmp_path / "results"
    arguments = ("replay", trace, "--model", suite.parent / "model", "--scheme", SCHEME, "--results", results)
    quantgate(monkeypatch, *arguments)
    told = capsys.readouterr().err
    assert told.index("quantize: done") < told.index("load: started")
    assert arms_of(results)[SCHEME]["scheme"] == SCHEME


def test_a_server_shows_the_preparation_and_keeps_apart_from_the_same_texts(suite: Path) -> None:
    """As `serve` loads."""
    shown = StringIO()
    settings, progress = EngineSettings(kernel_set="reference"), ProgressReporter(Console(file=shown))
    info = load_engine(str(suite.parent / "model"), SCHEME, settings, progress=progress).llm.info
    assert "quantize: done" in shown.getvalue()
    assert info.provenance["forbidden_sha256"] == passages_sha256(evaluation_passages())
    assert (info.name, info.scheme) == ("model", SCHEME)


def test_bench_measures_a_prepared_build(
    suite: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--prompt-lengths", 8, "--batch-sizes", 1, "--context", 8, "--repeats", 1, "--json")
    assert quantgate(monkeypatch, "bench", "--model", suite.parent / "model", "--schemes", SCHEME, *arguments) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["arms"][SCHEME]["scheme"] == SCHEME
    assert found.err.index("quantize: done") < found.err.index("load: started")
