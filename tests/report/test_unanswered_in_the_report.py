"""An arm that fails requests must not look faster anywhere: not in a table, a chart, or a saving."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from tests.report.page_reader import read_page
from tests.report.stored_run import build_run, build_verdict

from quantgate.report.charts.ecdf import _quantiles
from quantgate.report.engine_work import busy_requests_per_hour
from quantgate.report.render import render_report
from quantgate.report.run_view import RunView
from quantgate.report.sections.arms import key_figures
from quantgate.report.sections.latency import latency_section
from quantgate.report.sections.time_split import time_split_section
from quantgate.report.terminal import measured_table, terminal_table
from quantgate.report.unanswered_requests import COUNTED_AS, unanswered_lines
from quantgate.store.run_folder import LoadedRun
from quantgate.store.schemas import REQUESTS

ARM = "int4-g64"
NOTHING_CAME: dict[str, Any] = {
    "status": "failed", "error": "503: [bold]try\x1b[2J later[/].", "error_kind": "status_5xx", "output_tokens": 0,
    "finish_reason": None, "first_token_ns": None, "last_token_ns": None, "token_times_ns": [], "admitted_ns": None,
    "engine_first_token_ns": None, "engine_finished_ns": None, "output_token_ids": [], "first_answer_ns": None,
}  # fmt: skip


def failing(run: LoadedRun, share: float) -> LoadedRun:
    """The slowest `share` of the requests of `ARM` fail: what is left of it is faster than before."""
    rows = run.requests.to_pylist()
    own = sorted(
        (row for row in rows if row["arm_id"] == ARM), key=lambda row: row["scheduled_ns"] - row["first_token_ns"]
    )
    for row in own[: int(share * len(own))]:
        row |= NOTHING_CAME
    return replace(run, requests=pa.Table.from_pylist(rows, schema=REQUESTS))


@pytest.fixture(scope="module")
def whole() -> LoadedRun:
    return build_run(requests=120, items=4)


@pytest.fixture(scope="module")
def half(whole: LoadedRun) -> LoadedRun:
    return failing(whole, 0.6)


def cells(view: RunView, row: str) -> list[str]:
    table = key_figures(view)
    (found,) = [cells for cells in table.rows if cells[0] == row]
    return [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in found]


def test_percentiles_count_them_as_infinite(whole: LoadedRun, half: LoadedRun) -> None:
    assert cells(RunView(half, None), "requests finished")[-1] == "48 of 120"
    assert cells(RunView(half, None), "TTFT p50")[-1].startswith("∞ ms [")
    assert cells(RunView(half, None), "TPOT p50")[-1].startswith("∞ ms [")
    assert cells(RunView(half, None), "TTFT p50")[1:-1] == cells(RunView(whole, None), "TTFT p50")[1:-1]


def test_an_arm_that_served_nothing_has_no_times(whole: LoadedRun) -> None:
    assert cells(RunView(failing(whole, 1.0), None), "TTFT p50")[-1] == "\N{EN DASH}"


def test_a_distribution_ends_at_the_share_that_was_served(half: LoadedRun) -> None:
    x, y = _quantiles(np.array([1.0, 2.0, np.inf, np.inf, np.inf]))
    assert (x.tolist(), y.tolist()) == ([1.0, 2.0], [0.2, 0.4])
    section = latency_section(RunView(half, None))
    assert section is not None
    for figure in section.distributions:
        assert "ends below 100 %" in figure.explanation
        assert figure.table is not None
        assert figure.table.rows[-1][:3] == [ARM, "120", "72"]
    for figure in section.slices:
        assert figure.table is not None
        assert any("∞" in cell for cell in figure.table.rows[-1])
        assert not re.search(r'="[^"]*\b(nan|inf)\b', str(figure.svg))


def test_means_say_whose_they_are(half: LoadedRun) -> None:
    requests, _ = time_split_section(RunView(half, None))
    assert f"{ARM} finished 48 of 120" in requests.explanation
    assert requests.table is not None
    assert requests.table.rows[-1][:2] == [ARM, "48 of 120"]


def test_a_device_hour_counts_what_was_served(whole: LoadedRun, half: LoadedRun) -> None:
    before, after = (busy_requests_per_hour(RunView(run, None).arms[-1]) for run in (whole, half))
    assert before is not None
    assert after == pytest.approx(before * 48 / 120)


def test_the_page_tells_how_many_and_why(whole: LoadedRun, half: LoadedRun) -> None:
    text = read_page(render_report(half, build_verdict())).text
    assert f"{ARM}: 72 of 120 requests were not answered (72 failed); the commonest cause (72 of them): 503" in text
    assert COUNTED_AS in text
    assert "Unanswered requests over time" in text
    unharmed = read_page(render_report(whole, build_verdict())).text
    assert "nanswered request" not in unharmed
    assert unanswered_lines(RunView(whole, None)) == []


def test_the_terminal_tells_it_and_what_was_noted(half: LoadedRun) -> None:
    note = "scheduled as fast, because the engine has no such SLO class: batch"
    arms = [arm.model_copy(update={"notes": [note] if "fp16" in arm.arm_id else []}) for arm in half.manifest.arms]
    noted = replace(half, manifest=half.manifest.model_copy(update={"arms": arms}))
    for show in (measured_table, lambda run, console: terminal_table(run, build_verdict(), console)):
        out = io.StringIO()
        show(noted, Console(file=out, width=300, force_terminal=True, color_system=None))
        text = out.getvalue()
        assert f"{ARM}: 72 of 120 requests were not answered" in text
        assert "[bold]try" in text
        assert "\x1b[2J" not in text
        assert f"Note on fp16, fp16-aa: {note}" in text
        assert text.count(note) == 1
        assert COUNTED_AS in text
