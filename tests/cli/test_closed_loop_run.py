"""A closed loop is called one wherever its figures stand: record, terminal, report and verdict."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.tiny_suite import write_tiny_suite

from quantgate.cli.main import main, run_command
from quantgate.store.run_folder import load_run

WORDS = "closed loop, 2 clients"


def test_a_replay_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_suite(tmp_path, requests=8)
    (tmp_path / "engine.yaml").write_text("max_active_requests: 4\nmax_step_tokens: 32\nmax_context_tokens: 128\n")
    monkeypatch.setenv("COLUMNS", "200")
    command = [
        "quantgate", "replay", str(tmp_path / "traffic.jsonl"), "--model", str(tmp_path / "model"), "--scheme", "fp32",
        "--engine", str(tmp_path / "engine.yaml"), "--results", str(tmp_path / "results"), "--clients", "2",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", command)
    assert run_command() == 0
    assert f"Note on fp32: {WORDS}: the next request waits for an answer" in " ".join(capsys.readouterr().out.split())
    [folder] = (tmp_path / "results").iterdir()
    run = load_run(folder)
    assert run.manifest.workload is not None
    assert (run.manifest.workload.load, run.manifest.workload.clients) == (WORDS, 2)
    assert [certificate.load for certificate in run.manifest.fidelity] == [WORDS]
    edges = sorted(
        (row[key], step) for row in run.requests.to_pylist() for key, step in (("sent_ns", 1), ("ended_ns", -1))
    )
    assert max(sum(step for _, step in edges[: index + 1]) for index in range(len(edges))) == 2


def test_a_run_says_so_in_report_and_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite = write_tiny_suite(tmp_path)
    suite.write_text(suite.read_text().replace("blocks: 2,", "blocks: 2, clients: 2,"))
    monkeypatch.setattr(sys, "argv", ["quantgate", "run", str(suite), "--results", str(tmp_path / "results")])
    with pytest.raises(SystemExit):
        main()
    [folder] = (tmp_path / "results").iterdir()
    assert [note for note in json.loads((folder / "verdict.json").read_text())["notes"] if WORDS in note]
    report = (folder / "report.html").read_text()
    assert "from 2 clients that waited for the answers" in report
    assert f"<strong>{WORDS}</strong>. The next request waited for an answer" in report
    assert f"<strong>{WORDS}</strong>. A request was due when its client was free for it" in report
