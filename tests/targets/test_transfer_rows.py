"""What the arms table says of requests that crossed a network."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from tests.report.stored_run import build_manifest, build_run

from quantgate.report.figures import Table
from quantgate.report.run_view import RunView
from quantgate.report.sections.arms import arms_table
from quantgate.report.sections.transfer_rows import TRANSFER_ROWS


def table(limit_ms: float | None = None, **first_rows: list[object]) -> Table:
    """The arms table where these columns begin with these values for the baseline, whose rows come first."""
    run = build_run()
    requests = run.requests
    for name, values in first_rows.items():
        position = requests.schema.get_field_index(name)
        field = requests.schema.field(position)
        column = [*values, *requests.column(name).to_pylist()[len(values) :]]
        requests = requests.set_column(position, field, pa.array(column, field.type))
    policy = {"name": "chat", "slo": {"interactive": {"longest_gap_ms": limit_ms}}}
    manifest = build_manifest(len(requests)).model_copy(update={"policy": policy})
    return arms_table(RunView(replace(run, requests=requests, manifest=manifest), None))


def row(of: Table, name: str) -> list[str] | None:
    return next((cells[1:] for cells in of.rows if cells[0] == name), None)


def test_they_are_left_out_where_nothing_crossed_a_network() -> None:
    assert [name for name in TRANSFER_ROWS if row(table(), name) is not None] == []


def test_failures_retries_and_counting_are_told_by_arm() -> None:
    told = table(
        error_kind=["early_close", "status_429", "status_429"],
        attempts=[3, 1, 2],
        counted_by=["usage", "ids", "usage"],
        client_overhead_ns=[1_500_000, None, 250_000],
    )
    assert row(told, "failures by kind") == ["2 status_429, 1 early_close", "–", "–", "–"]
    assert row(told, "sent again") == ["2 requests, 3 times", "–", "–", "–"]
    assert row(told, "tokens counted by") == ["2 usage, 1 ids", "–", "–", "–"]
    assert row(told, "client overhead") == ["1.50\u00a0ms at most", "–", "–", "–"]


def test_stalls_are_counted_where_the_policy_limits_gaps() -> None:
    """The synthetic rows have two token times each: one gap a request, and row 0 is of the class batch."""
    ms = 1_000_000
    times = [[0, 900 * ms], [0, 900 * ms, 1000 * ms, 2000 * ms], [0, 10 * ms]]
    told = row(table(500_000.0, token_times_ns=times), "stalls")
    assert told == ["0 in 0 requests"] * 4
    stalled = row(table(899.0, token_times_ns=times), "stalls")
    assert stalled is not None
    less = row(table(899.0, token_times_ns=[[0, 900 * ms], [0, 10 * ms], [0, 10 * ms]]), "stalls")
    assert less is not None
    assert int(stalled[0].split()[0]) - int(less[0].split()[0]) == 2
