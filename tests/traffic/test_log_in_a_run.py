"""A request log through a whole run: what was read and redacted is recorded, and histories are whose they should be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.tiny_suite import write_tiny_suite
from tests.traffic.log_files import chat_row, write_log

from quantgate.cli.main import main
from quantgate.store.run_folder import LoadedRun, load_run

START = 1769860800
RECORDED_ANSWER = "w7 w8"
MAP = "schema: quantgate.columns/1\nclass: {path: tier, values: {gold: interactive, bronze: batch}}\n"


def run_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workload: str) -> LoadedRun:
    suite = write_tiny_suite(tmp_path)
    rows = [chat_row(START, f"w{i} w{i + 1} mail a{i}@x.org", id=f"r{i}", tier="bronze") for i in range(20, 24)]
    rows += [
        chat_row(START, "w5 w6", id="first", answer=RECORDED_ANSWER, end_time=START + 0.01, tier="gold"),
        chat_row(START + 0.02, "w5 w6", RECORDED_ANSWER, "w9", id="second", tier="gold"),
        chat_row(START, "w3", id="broken", status=500),
    ]
    (tmp_path / "logs").mkdir()
    write_log(tmp_path / "logs" / "access.jsonl", *rows)
    (tmp_path / "columns.yaml").write_text(MAP)
    text = suite.read_text()
    suite.write_text(
        text.replace("trace: traffic.jsonl", f"trace: logs/access.jsonl, columns: columns.yaml, {workload}")
    )
    monkeypatch.setattr(sys, "argv", ["quantgate", "run", str(suite), "--results", str(tmp_path / "results")])
    with pytest.raises(SystemExit):
        main()
    [folder] = (tmp_path / "results").iterdir()
    return load_run(folder)


def test_what_was_read_left_out_redacted_and_sampled_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = "transforms: [{kind: sample, requests: 5, by: [class]}]"
    workload = run_log(tmp_path, monkeypatch, sample).manifest.workload
    assert workload is not None
    assert workload.history == "recorded"
    read, redact, sampled = workload.transforms
    assert (read["name"], read["rows_in"], read["rows_out"]) == ("read log", 7, 6)
    assert read["parameters"]["left_out"] == {"failed": 1}
    assert (redact["name"], redact["parameters"]) == ("redact", {"found": {"EMAIL": 4}})
    assert sampled["parameters"]["strata"] == {"batch": {"of": 4, "kept": 3}, "interactive": {"of": 2, "kept": 2}}
    assert workload.requests == 5


@pytest.mark.parametrize("history", ["recorded", "live"])
def test_later_turns_see_the_recorded_answers_or_the_arms_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: str
) -> None:
    run = run_log(tmp_path, monkeypatch, f"history: {history}")
    assert run.manifest.workload is not None
    assert run.manifest.workload.history == history
    rows = {(row["arm_id"], row["request_id"]): row for row in run.requests.to_pylist()}
    for arm_id in ("fp32", "fp32-aa", "candidate"):
        answer = rows[arm_id, "first"]["output_text"] if history == "live" else RECORDED_ANSWER
        assert rows[arm_id, "second"]["prompt_text"] == f"w3 w5 w6 w3 {answer} w3 w9 w4"
    assert "EMAIL" not in str(rows)  # The tiny vocabulary has no such word.
    assert "x.org" not in str(rows)
