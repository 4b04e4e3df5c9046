"""Conversations and spans through a whole run: what was read is recorded, and lengths are the run's tokenizer's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.tiny_suite import write_tiny_suite
from tests.traffic.span_files import said, span

from quantgate.cli.main import main
from quantgate.store.run_folder import load_run


def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trace: str) -> tuple[dict[str, Any], int]:
    """The step that read the trace, and how many requests were planned."""
    suite = write_tiny_suite(tmp_path)
    (tmp_path / "other.json").write_text(trace)
    suite.write_text(suite.read_text().replace("trace: traffic.jsonl", "trace: other.json"))
    monkeypatch.setattr(sys, "argv", ["quantgate", "run", str(suite), "--results", str(tmp_path / "results")])
    with pytest.raises(SystemExit):
        main()
    [folder] = (tmp_path / "results").iterdir()
    workload = load_run(folder).manifest.workload
    assert workload is not None
    return workload.transforms[0], workload.requests


def test_conversations_without_times_are_replayed_and_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [("human", "w5 w6"), ("gpt", "w7 w8"), ("human", "w9"), ("gpt", "w1 w2 w3")]
    talks = [{"conversations": [{"from": who, "value": value} for who, value in turns]}] * 3
    step, requests = recorded(tmp_path, monkeypatch, json.dumps(talks))
    assert step["name"] == "read conversations"
    assert (step["parameters"]["without_times"], requests) == (6, 6)
    assert step["parameters"]["output_lengths_from"] == {"answer": 6}


def test_spans_are_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = [span(f"s{number}", number / 100, input__messages=[said("user", f"w{number} w6")]) for number in range(4)]
    step, requests = recorded(
        tmp_path, monkeypatch, "\n".join(map(json.dumps, [*spans, span("h", operation__name="plan")]))
    )
    assert (step["name"], requests) == ("read spans", 4)
    assert step["parameters"]["left_out"] == {"plan": 1}
