"""Running totals become growth, values of the moment stay: worked out by hand and as a property."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantgate.server_metrics.phases import Phase, Scrape, rows_of_cell
from quantgate.server_metrics.scrape import Reading
from quantgate.server_metrics.summary import summarise
from quantgate.store.schemas import SERVER_METRICS

PHASES: list[Phase] = ["before", "during", "during", "after"]


def gauge(metric: str, value: float, labels: str = "{}") -> Reading:
    return Reading(metric, metric, labels, value, grows=False)


def total(metric: str, value: float, labels: str = "{}") -> Reading:
    return Reading(metric, metric, labels, value, grows=True)


def cell(*readings: list[Reading], phases: list[Phase] | None = None, start_ns: int = 0) -> list[dict[str, Any]]:
    scrapes = [
        Scrape(phase, start_ns + index, seen)
        for index, (phase, seen) in enumerate(zip(phases or PHASES, readings, strict=False))
    ]
    return list(rows_of_cell("int4", scrapes))


def table_of(*cells: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([row for rows in cells for row in rows], schema=SERVER_METRICS)


def grown(rows: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(row["phase"], row["value"]) for row in rows]


def test_values_of_the_moment_are_kept_as_they_are() -> None:
    rows = cell([gauge("active_requests", 0)], [gauge("active_requests", 5)], [], [gauge("active_requests", 1)])
    assert grown(rows) == [("before", 0), ("during", 5), ("after", 1)]
    assert rows[1] == {
        "arm_id": "int4", "phase": "during", "time_ns": 1, "metric": "active_requests",
        "server_name": "active_requests", "labels": "{}", "value": 5,
    }  # fmt: skip


def test_totals_have_the_growth_since_the_scrape_before() -> None:
    rows = cell(*([total("output_tokens", value)] for value in (100, 130, 190, 200)))
    assert grown(rows) == [("during", 30), ("during", 60), ("after", 10)]


def test_a_total_that_fell_was_started_again() -> None:
    rows = cell(*([total("output_tokens", value)] for value in (100, 130, 5, 25)))
    assert grown(rows) == [("during", 30), ("during", 5), ("after", 20)]


def test_a_total_that_is_missing_for_a_while_loses_nothing() -> None:
    rows = cell([total("x", 10)], [], [], [total("x", 17)])
    assert grown(rows) == [("after", 7)]


def test_a_total_that_appears_has_grown_from_nought() -> None:
    # A label's first event makes its series: it was nought before.
    rows = cell([total("x", 1, '{"cause": "a"}')], [total("x", 1, '{"cause": "a"}'), total("x", 3, '{"cause": "b"}')])
    assert grown(rows) == [("during", 0), ("during", 3)]


def test_where_the_first_scrape_failed_its_growth_is_unknown() -> None:
    assert grown(cell([total("x", 40)], [total("x", 45)], phases=["during", "after"])) == [("after", 5)]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.integers(0, 1000))
def test_the_growth_of_all_phases_adds_up_to_that_of_the_cell(steps: list[int], start: int) -> None:
    values = [start]
    for step in steps:
        values.append(values[-1] + step)
    phases: list[Phase] = ["before", *(["during"] * (len(values) - 2)), "after"]  # type: ignore[list-item]
    rows = cell(*([total("x", value)] for value in values), phases=phases)
    assert sum(row["value"] for row in rows) == values[-1] - start


def test_an_arms_figures_over_its_cells() -> None:
    def at(active: float, tokens: float, milliseconds: float, count: float) -> list[Reading]:
        return [
            gauge("active_requests", active, '{"engine": "0"}'),
            gauge("active_requests", 1, '{"engine": "1"}'),
            gauge("kv_cache_pool_usage", active / 10, '{"engine": "0"}'),
            gauge("kv_cache_pool_usage", 0.05, '{"engine": "1"}'),
            total("output_tokens", tokens),
            total("queue_time_ms_sum", milliseconds),
            total("queue_time_ms_count", count),
        ]

    first = cell(at(0, 1000, 50, 5), at(4, 1100, 90, 7), at(6, 1200, 250, 9), at(2, 1300, 250, 9))
    second = cell(at(2, 9000, 500, 50), at(8, 9010, 600, 52), phases=["before", "after"], start_ns=100)
    table = table_of(first, second)
    figures = {summary.metric.name: summary for summary in summarise(table, "int4")}
    active, usage = figures["active_requests"], figures["kv_cache_pool_usage"]
    # Two engines: their requests add up, the fuller one's usage counts.
    assert (active.before, active.during_mean, active.during_max, active.after) == (2.0, 6.0, 7.0, 6.0)
    assert (usage.before, usage.during_max) == (pytest.approx(0.125), 0.6)
    assert figures["output_tokens"].grown == 310.0
    queue = figures["queue_time_ms"]
    assert (queue.mean, queue.count) == (300 / 6, 6)
    assert summarise(table, "fp16") == []


def test_a_histogram_that_got_no_value_has_no_mean() -> None:
    rows = cell(*([total("queue_time_ms_sum", 5.0), total("queue_time_ms_count", 2.0)] for _ in range(3)))
    assert summarise(table_of(rows), "int4") == []
