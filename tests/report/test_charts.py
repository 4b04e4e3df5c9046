"""Charts: values land on the pixels that their axes promise."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.page_reader import read_page

from quantgate.report.charts.counts import counts_chart
from quantgate.report.charts.ecdf import ecdf_chart
from quantgate.report.charts.forest import Whisker, forest_row
from quantgate.report.charts.frame import BOTTOM, LEFT, RIGHT, TOP
from quantgate.report.charts.scale import Scale, linear_scale, log_scale
from quantgate.report.charts.series_style import STYLES, line_swatch
from quantgate.report.charts.stacked_bars import stacked_bars
from quantgate.report.charts.svg import path_through


def test_scales_map_ends_and_middles() -> None:
    linear, logarithmic = Scale(0, 10, 100, 200), Scale(1, 100, 0, 50, logarithmic=True)
    assert [linear.at(v) for v in (0, 5, 10, 11, -1)] == [100, 150, 200, 200, 100]
    assert logarithmic.at(10) == pytest.approx(25)
    assert linear.ticks(5) == [0, 2, 4, 6, 8, 10]
    assert logarithmic.ticks(6) == [1, 10, 100] or 10 in logarithmic.ticks(6)


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=30))
def test_every_scale_holds_its_data_and_a_tick(values: list[float]) -> None:
    data = np.array(values)
    for scale in (linear_scale(data, 0, 100), log_scale(data, 0, 100)):
        assert scale.low <= data.min() * 1.0000001
        assert scale.high >= data.max() * 0.9999999
        assert len(scale.ticks(5)) <= 12
        assert all(np.isfinite(scale.ticks(5)))


def test_scales_of_nothing_are_usable() -> None:
    nothing = np.array([np.nan])
    assert linear_scale(nothing, 0, 100).ticks(4)
    assert log_scale(np.array([0.0]), 0, 100).high > 1


def test_paths_break_at_gaps() -> None:
    nan = np.nan
    assert path_through(np.arange(5.0), np.array([nan, 1, 5, nan, nan])) == "M1 1L2 5"
    assert path_through(np.arange(4.0), np.array([0, nan, 5, 6])) == "M0 0m-2 0h4M2 5L3 6"
    assert path_through(np.arange(2.0), np.array([nan, nan])) == ""


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


def test_an_ecdf_ends_at_the_top_and_stays_small_for_many_values() -> None:
    values = np.random.default_rng(1).lognormal(4, 1, 10_000)
    chart = str(ecdf_chart("title", "ms", [("fp16", 0, values)]))
    line = next(a["d"] for a in read_page(chart).attributes("path") if a["class"] == "line s0")
    drawn = points(str(line))
    assert drawn[-1][1] == pytest.approx(TOP, abs=0.1)
    assert [y for _, y in drawn] == sorted((y for _, y in drawn), reverse=True)
    assert [x for x, _ in drawn] == sorted(x for x, _ in drawn)
    median = min(drawn, key=lambda point: abs(point[1] - (TOP + BOTTOM) / 2))[0]
    scale = log_scale(values, LEFT, RIGHT)
    assert median == pytest.approx(scale.at(float(np.median(values))), abs=3)
    assert len(chart) < 10_000


def test_a_forest_row_puts_estimate_and_margin_where_they_belong() -> None:
    row = read_page(str(forest_row("d", Whisker(0.5, 0.25, None), None, "pass", "margin")))
    zero, margin = (
        next(float(str(a["x1"])) for a in row.attributes("line") if a["class"] == name) for name in ("zero", "margin")
    )
    square = next(a for a in row.attributes("rect") if a["class"] == "estimate")
    assert float(str(square["x"])) + 4 == pytest.approx((zero + margin) / 2, abs=0.1)
    assert [a["class"] for a in row.attributes("path")] == ["interval"], "an unbounded end is an arrow"


def test_bars_are_as_long_as_their_parts() -> None:
    page = read_page(str(stacked_bars("t", "d", [("a", [10.0, 30.0]), ("b", [20.0, 0.0])], "ms")))
    widths = [float(str(a["width"])) for a in page.attributes("rect")]
    assert widths[1] == pytest.approx(3 * widths[0], abs=0.2)
    assert widths[2] == pytest.approx(2 * widths[0], abs=0.2)
    assert widths[3] == 0


def test_long_runs_share_windows_and_lose_no_request() -> None:
    intended = list(range(1000))
    page = read_page(str(counts_chart("t", 1, intended, intended)))
    bars = [a for a in page.attributes("rect") if a["class"] == "intended"]
    assert len(bars) == 143
    assert "requests per 7 s" in page.text


def test_arms_differ_in_shape_as_well_as_in_colour() -> None:
    shapes = {str(read_page(str(line_swatch(i))).attributes("path")[0]["d"]) for i in range(STYLES)}
    assert len(shapes) == STYLES
