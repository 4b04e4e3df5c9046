"""Figures that are added up batch by batch are those of the whole, however it was cut."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import SECOND, patiently

from quantgate.traces.shape.batch import MOST_ROWS, UNKNOWN_LENGTH, ArrivalBatch
from quantgate.traces.shape.gaps import Gaps, sum_of_squares
from quantgate.traces.shape.length_counts import LengthCounts
from quantgate.traces.shape.window_counts import WindowCounts
from quantgate.traces.traffic_shape import ShapeTotals

# Whole and half seconds, so that rows fall on edges of windows and together; some long after the others.
TIMES = st.lists(
    st.one_of(st.integers(0, 90).map(lambda half: half * SECOND // 2), st.integers(0, 10**18)), min_size=1, max_size=60
).map(sorted)
CUTS = st.lists(st.integers(0, 60), max_size=6)


def pieces(values: list[int], cuts: list[int]) -> list[np.ndarray]:
    edges = sorted({0, len(values), *(min(cut, len(values)) for cut in cuts)})
    return [np.array(values[start:end], dtype=np.int64) for start, end in pairwise(edges)]


@patiently
@given(TIMES, CUTS, st.sampled_from([1, 10, 60]))
def test_counts_in_windows_are_those_of_counting_window_by_window(
    times: list[int], cuts: list[int], window_s: int
) -> None:
    windows = WindowCounts(window_s)
    for piece in pieces(times, cuts):
        windows.add(piece)
    numbers = [(time - times[0]) // (window_s * SECOND) for time in times]
    counts = {number: numbers.count(number) for number in numbers}
    total = numbers[-1] + 1
    mean = len(times) / total
    variance = sum(count**2 for count in counts.values()) / total - mean**2
    spread = windows.spread()
    assert (spread.window_s, spread.windows) == (window_s, total)
    expected = pytest.approx(variance / mean, abs=1e-9) if total > 1 else None
    assert spread.variance_to_mean == expected
    assert spread.peak_to_mean == pytest.approx(max(counts.values()) / mean)


@patiently
@given(TIMES, CUTS)
def test_the_variation_of_gaps_is_exact(times: list[int], cuts: list[int]) -> None:
    gaps = Gaps()
    for piece in pieces(times, cuts):
        gaps.add(piece)
    between = [later - earlier for earlier, later in pairwise(times)]
    assert gaps.span_ns == sum(between)
    if len(between) < 2 or not sum(between):
        assert gaps.variation() is None
    else:
        exact = (len(between) * sum(gap**2 for gap in between) - sum(between) ** 2) / sum(between) ** 2
        assert gaps.variation() == math.sqrt(exact)


@patiently
@given(st.lists(st.integers(0, 1 << 60), max_size=40))
def test_squares_are_summed_beyond_64_bits(values: list[int]) -> None:
    assert sum_of_squares(np.array(values, dtype=np.int64)) == sum(value**2 for value in values)


def test_squares_of_the_largest_batch_do_not_overflow() -> None:
    largest = (1 << 60) - 1
    assert sum_of_squares(np.full(MOST_ROWS, largest, dtype=np.int64)) == MOST_ROWS * largest**2


@patiently
@given(st.lists(st.one_of(st.integers(0, 50), st.integers((1 << 20) - 2, 10**9)), min_size=1, max_size=60), CUTS)
def test_percentiles_of_counted_lengths_are_those_of_the_lengths(lengths: list[int], cuts: list[int]) -> None:
    counts = LengthCounts()
    for piece in pieces(lengths, cuts):
        counts.add(piece)
    found = counts.percentiles()
    assert found is not None
    expected = np.percentile(np.array(lengths), [50, 90, 95, 99])
    assert [found.p50, found.p90, found.p95, found.p99] == expected.tolist()
    assert (found.max, counts.rows, counts.tokens) == (max(lengths), len(lengths), sum(lengths))
    assert counts.share_up_to(25) == sum(length <= 25 for length in lengths) / len(lengths)


@patiently
@given(TIMES, CUTS)
def test_a_shape_does_not_depend_on_how_rows_were_cut(times: list[int], cuts: list[int]) -> None:
    lengths = [time % 700 + 1 for time in times]
    inputs = [UNKNOWN_LENGTH if length % 7 == 0 else length for length in lengths]
    whole, cut = ShapeTotals(), ShapeTotals()
    columns = [np.array(values, dtype=np.int64) for values in (times, inputs, lengths)]
    whole.add(ArrivalBatch(*columns))
    for batch in zip(pieces(times, cuts), pieces(inputs, cuts), pieces(lengths, cuts), strict=True):
        cut.add(ArrivalBatch(*batch))
    assert cut.shape() == whole.shape()
