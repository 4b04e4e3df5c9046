"""`quantgate replay` tells its figures on the terminal, and what was not answered beside them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.tiny_suite import write_tiny_suite

from quantgate.cli.main import run_command

ENGINE = "max_active_requests: 4\nmax_step_tokens: 32\nmax_context_tokens: 128\n"


def replay(monkeypatch: pytest.MonkeyPatch, folder: Path, engine: str, *more: str) -> int:
    write_tiny_suite(folder, requests=8)
    (folder / "engine.yaml").write_text(engine)
    monkeypatch.setenv("COLUMNS", "200")
    flags = ("--model", str(folder / "model"), "--scheme", "fp32", "--engine", str(folder / "engine.yaml"))
    command = ["replay", str(folder / "traffic.jsonl"), *flags, "--results", str(folder / "results"), *more]
    monkeypatch.setattr(sys, "argv", ["quantgate", *command])
    return run_command()


def test_figures_are_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classes = "batching: {slo_classes: [{name: fast}]}\n"
    assert replay(monkeypatch, tmp_path, ENGINE + classes) == 0
    out = " ".join(capsys.readouterr().out.split())
    for expected in ("fp32", "requests finished", "8 of 8", "TTFT p50", "TPOT p50"):
        assert expected in out
    assert "scheduled as fast, because the engine has no such SLO class: interactive" in out
    assert "not answered" not in out


def test_a_replay_that_rejects_most_of_its_requests_says_so_and_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cap = "block_size: 1\nadmission: {over_cap: reject, max_kv_tokens: 10}\n"
    assert replay(monkeypatch, tmp_path, ENGINE + cap) == 0
    out = " ".join(capsys.readouterr().out.split())
    finished = int(out[out.index("requests finished") :].split()[2])
    assert 0 < finished < 4
    assert f"fp32: {8 - finished} of 8 requests were not answered ({8 - finished} rejected)" in out
    # Five are above the cap by themselves; two more only where they meet another one.
    assert "the commonest cause (5 of them): Request r02 can never run" in out


def test_json_stays_one_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(monkeypatch, tmp_path, ENGINE, "--json") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "quantgate.run/1"
