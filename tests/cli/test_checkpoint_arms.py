"""Arms whose weights are a quantized checkpoint: the suite's model, quantized before the run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.tiny_suite import write_tiny_suite
from typer.testing import CliRunner

from quantgate.cli.main import app, run_command
from quantgate.store.run_folder import load_run


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = write_tiny_suite(tmp_path)
    arguments = ["quantize", str(tmp_path / "model"), "--scheme", "int8-w8a16", "--out", str(tmp_path / "built")]
    made = CliRunner().invoke(app, arguments)
    assert made.exit_code == 0, made.output
    own = f"{{scheme: stored, model: {tmp_path / 'built'}, id: candidate}}"
    path.write_text(path.read_text().replace("{scheme: int8-w8a16, id: candidate}", own))
    return path


def run(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["quantgate", "run", str(suite), "--results", str(tmp_path / "results"), "--json"])
    return run_command()


def test_a_checkpoint_is_judged_as_a_build_of_the_suites_model(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy.read_text() + "must_match: [model, tokenizer_fingerprint]\n")
    assert run(suite, tmp_path, monkeypatch) == 0, capsys.readouterr().err
    [folder] = (tmp_path / "results").iterdir()
    arms: dict[str, Any] = {arm["arm_id"]: arm for arm in json.loads((folder / "run.json").read_text())["arms"]}
    assert arms["candidate"]["scheme"] == "stored"
    assert arms["candidate"]["model"] == arms["fp32"]["model"] == "model"
    assert any("its weights are" in note for note in arms["candidate"]["notes"])
    assert load_run(folder).manifest.state == "complete"


def test_a_checkpoint_that_reads_text_otherwise_is_not_compared(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy.read_text() + "must_match: [model, tokenizer_fingerprint]\n")
    tokenizer = tmp_path / "built" / "tokenizer.json"
    # One token for any text without the words of the vocabulary, where the suite's model has one for each word.
    tokenizer.write_text(json.dumps(json.loads(tokenizer.read_text()) | {"pre_tokenizer": None}))
    (tmp_path / "built" / "quantgate.json").unlink()
    assert run(suite, tmp_path, monkeypatch) != 0
    assert "tokenizer" in capsys.readouterr().err


def test_a_checkpoint_that_is_not_there_is_told_before_anything_is_measured(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.write_text(suite.read_text().replace(str(tmp_path / "built"), str(tmp_path / "none")))
    assert run(suite, tmp_path, monkeypatch) == 2
    assert "there is no model of this name" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "results").exists()
