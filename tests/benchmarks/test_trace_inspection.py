"""The trace that the benchmark makes is one that the command takes, in both of the styles that Azure mixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import trace_inspection


def test_a_small_trace_is_made_and_inspected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "azure.csv"
    monkeypatch.setattr(trace_inspection, "ROWS_AT_A_TIME", 700)
    trace_inspection.make_trace(path, 2000, seed=3)
    times = [line.split(",")[0] for line in path.read_text().splitlines()[1:]]
    assert len(times) == 2000
    assert {len(time) for time in times} == {len("2024-05-10 00:00:00+00:00"), len("2024-05-10 00:00:00.000000+00:00")}
    measured = trace_inspection.inspect(path)
    assert measured["found"]["rows"] == 2000
    assert 40 < measured["found"]["rate_rps"] < 50
    assert measured["peak_memory_mib"] > 10
