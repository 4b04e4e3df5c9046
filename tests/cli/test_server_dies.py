"""A server that dies in mid-run, and servers that cannot be used: what a run says, and what it keeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.cli.test_server_arms import free_port

from quantgate.cli.main import main
from quantgate.store.run_folder import load_run

SERVER = Path(__file__).with_name("mortal_server.py")
FOREVER = 10_000


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [
        {
            "timestamp": f"2026-11-20T09:00:0{index}.000Z",
            "request": {"messages": [{"role": "user", "content": f"Question {index}"}], "max_tokens": 8},
            "response": {"usage": {"prompt_tokens": 5, "completion_tokens": 3}},
        }
        for index in range(6)
    ]
    path = tmp_path / "access.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


Judged = Callable[[int | str, int | str], tuple[int, Path]]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: Path) -> Judged:
    """Runs two servers that live for so many streamed answers; returns exit code and results folder."""

    def invoke(baseline_answers: int | str, candidate_answers: int | str) -> tuple[int, Path]:
        flags = ["--log", str(log), "--speed", "20", "--blocks", "1", "--results", str(tmp_path / "results")]
        for flag, answers in (("baseline", baseline_answers), ("candidate", candidate_answers)):
            command = f"{sys.executable} {SERVER} {{port}} {answers}"
            flags += [f"--{flag}", f"http://127.0.0.1:{free_port()}", f"--launch-{flag}", command]
        monkeypatch.setattr(sys, "argv", ["quantgate", "run", *flags])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(str(ended.value.code)), tmp_path / "results"

    return invoke


def test_servers_without_a_tokenizer_are_judged_as_far_as_they_can_be(judged, capsys):
    code, results = judged(FOREVER, FOREVER)
    [folder] = results.iterdir()
    run = load_run(folder)
    assert code == 4, capsys.readouterr().err
    assert run.manifest.state == "complete"
    assert set(run.requests["status"].to_pylist()) == {"finished"}
    assert set(run.requests["output_text"].to_pylist()) == {"one two three"}
    statuses = {(status.tier, status.status) for status in run.manifest.quality_tiers}
    assert ("distribution", "not_measurable") in statuses
    assert ("answers", "partial") in statuses


def test_a_server_that_dies_in_mid_run_ends_it_and_what_was_measured_is_kept(judged, capsys):
    # The probe streams once, the warm-up four times; the baseline's turn of 6 passes, the candidate dies in its own.
    code, results = judged(FOREVER, 8)
    error = capsys.readouterr().err
    [folder] = results.iterdir()
    run = load_run(folder)
    assert code == 3
    assert "candidate" in error
    assert "exit code 9" in error
    assert "out of memory, dying" in error
    assert "Traceback" not in error
    assert (run.manifest.state, run.manifest.phase) == ("failed", "replay")
    finished = [(row["arm_id"], row["status"]) for row in run.requests.select(["arm_id", "status"]).to_pylist()]
    assert finished.count(("baseline", "finished")) == 6
    assert 0 < finished.count(("candidate", "finished")) < 6
    assert "failed" in (folder / "report.html").read_text().lower()
    assert not (folder / "verdict.json").exists()
    left = [process for process in psutil.process_iter(["cmdline"]) if str(SERVER) in (process.info["cmdline"] or [])]
    assert not left


def test_a_run_in_which_nothing_was_answered_fails_with_the_commonest_cause(judged, capsys):
    code, results = judged("never", "never")
    error = capsys.readouterr().err
    [folder] = results.iterdir()
    run = load_run(folder)
    assert code == 3
    assert "None of the 18 requests was answered, on any arm; the commonest cause (12 of them): http://" in error
    assert "no event stream but one whole JSON document" in error
    assert (run.manifest.state, run.manifest.phase) == ("failed", "replay")
    assert set(run.requests["error_kind"].to_pylist()) == {"malformed_event"}
    assert not (folder / "verdict.json").exists()


def test_a_server_that_dies_before_anything_is_measured_leaves_nothing(judged, capsys):
    code, results = judged(FOREVER, 0)
    error = capsys.readouterr().err
    assert code == 3
    assert "Traceback" not in error
    folders = list(results.iterdir()) if results.exists() else []
    assert all(load_run(folder).manifest.state == "failed" for folder in folders)
