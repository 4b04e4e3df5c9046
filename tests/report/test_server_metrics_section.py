"""The table of what servers tell of themselves."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from tests.report.page_reader import read_page
from tests.report.stored_run import build_run

from quantgate.report.numbers import NOTHING
from quantgate.report.render import render_report
from quantgate.report.run_view import RunView
from quantgate.report.sections.server_metrics import ServerMetricsSection, server_metrics_section
from quantgate.store.schemas import SERVER_METRICS


def row(arm: str, phase: str, metric: str, value: float, time_ns: int = 0, name: str = "x") -> dict[str, object]:
    return {
        "arm_id": arm, "phase": phase, "time_ns": time_ns, "metric": metric, "server_name": name, "labels": "{}",
        "value": value,
    }  # fmt: skip


def section(*rows: dict[str, object]) -> ServerMetricsSection | None:
    table = pa.Table.from_pylist(list(rows), schema=SERVER_METRICS)
    return server_metrics_section(RunView(replace(build_run(requests=8), server_metrics=table), None))


def test_each_figure_stands_for_all_arms_below_each_other() -> None:
    found = section(
        row("int4-g64", "after", "output_tokens", 1234.0),
        row("fp16", "before", "kv_cache_pool_usage", 0.0),
        row("fp16", "during", "kv_cache_pool_usage", 0.25, 1),
        row("fp16", "during", "kv_cache_pool_usage", 0.75, 2),
        row("fp16", "after", "kv_cache_pool_usage", 0.1, 3),
        row("int4-g64", "during", "kv_cache_pool_usage", 0.5, 9),
        row("fp16", "during", "queue_time_ms_sum", 250.0, 1),
        row("fp16", "during", "queue_time_ms_count", 10.0, 1),
        row("fp16", "during", "preemption_count", 3.0, 1),
    )
    assert found is not None
    assert found.table is not None
    cells = [[cell.replace("\u00a0", " ") for cell in line[1:]] for line in found.table.rows]
    nothing = [NOTHING] * 4
    assert sorted(cells) == sorted([
        ["fp16", "0 %", "50.0 %", "75.0 %", "10.0 %", NOTHING],
        ["int4-g64", NOTHING, "50.0 %", "50.0 %", NOTHING, NOTHING],
        ["fp16", *nothing, "25.0 ms on average over 10"],
        ["int4-g64", *nothing, "1,234 tokens"],
        ["fp16", *nothing, "3"],
    ])  # fmt: skip
    assert [line[0] for line in found.table.rows[:2]] == ["share of the KV cache's memory that is in use"] * 2


def test_servers_without_known_names_are_named() -> None:
    found = section(row("fp16", "during", "other", 3.0, name="my_queue"))
    assert found == ServerMetricsSection(table=None, unnamed=["fp16"])


def test_a_run_without_servers_has_no_such_section() -> None:
    assert section() is None


def test_the_page_shows_it_where_there_is_something_to_show() -> None:
    def page(*rows: dict[str, object]) -> str:
        table = pa.Table.from_pylist(list(rows), schema=SERVER_METRICS)
        return read_page(render_report(replace(build_run(requests=8), server_metrics=table), None)).text

    title = "What the servers tell of themselves"
    assert title not in page()
    shown = page(row("fp16", "after", "preemption_count", 3.0), row("int4-g64", "during", "other", 1.0))
    assert title in shown
    assert "requests that lost their place and began again" in shown
    assert "No names are known for the server of int4-g64" in shown
