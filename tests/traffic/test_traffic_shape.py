"""Rate, burstiness and lengths against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.traffic.records import SECOND, counted

from quantgate.traces.traffic_shape import describe, shape_of


def test_five_requests_by_hand() -> None:
    # Gaps 1, 3, 1, 3 s: mean 2, standard deviation 1.
    records = [counted(f"r{i}", at, prompt, 10 * prompt) for i, (at, prompt) in enumerate(
        [(0, 1), (1, 2), (4, 3), (5, 4), (8, 5)]
    )]  # fmt: skip
    assert describe(records).to_json() == {
        "rows": 5,
        "span_s": 8.0,
        "rate_rps": 0.5,
        "iat_cv": 0.5,
        "counts": (
            # 1 1 0 0 1 1 0 0 1: mean 5/9, mean of squares 5/9.
            {"window_s": 1, "windows": 9, "variance_to_mean": pytest.approx(4 / 9), "peak_to_mean": pytest.approx(1.8)},
            {"window_s": 10, "windows": 1, "variance_to_mean": None, "peak_to_mean": 1.0},
            {"window_s": 60, "windows": 1, "variance_to_mean": None, "peak_to_mean": 1.0},
        ),
        "clock": None,
        "input_tokens": {
            "p50": 3.0, "p90": pytest.approx(4.6), "p95": pytest.approx(4.8), "p99": pytest.approx(4.96), "max": 5
        },
        "rows_of_unknown_input": 0,
        "output_tokens": {
            "p50": 30.0, "p90": pytest.approx(46.0), "p95": pytest.approx(48.0), "p99": pytest.approx(49.6), "max": 50
        },
        "input_to_output": 0.1,
        "input_tokens_per_s": 15 / 8,
        "output_tokens_per_s": 150 / 8,
        "fits_context": {1024: 1.0, 2048: 1.0, 4096: 1.0},
    }  # fmt: skip


def test_a_poisson_process_has_a_cv_of_one_and_counts_that_vary_as_much_as_their_mean() -> None:
    times = np.cumsum(np.random.default_rng(1).exponential(SECOND, 50_000)).astype(int).tolist()
    shape = shape_of(times, [None] * len(times), [1] * len(times))
    assert shape.iat_cv == pytest.approx(1.0, abs=0.02)
    assert shape.rate_rps == pytest.approx(1.0, abs=0.02)
    # Standard error of a ratio of variance to mean over n windows: sqrt(2 / n).
    for counts in shape.counts:
        assert counts.variance_to_mean == pytest.approx(1.0, abs=4 * (2 / counts.windows) ** 0.5)


def test_lengths_that_nobody_knows_are_not_guessed_but_counted() -> None:
    text = counted("a", prompt=1, output=5)
    object.__setattr__(text, "prompt_token_count", None)
    shape = describe([text, counted("b", 4, prompt=4, output=2)])
    assert shape.input_tokens is not None
    assert (shape.input_tokens.max, shape.rows_of_unknown_input) == (4, 1)
    assert (shape.input_to_output, shape.input_tokens_per_s, shape.output_tokens_per_s) == (2.0, None, 7 / 4)
    assert describe([text]).input_tokens is None
    measured = describe([text, counted("b")], lambda record: 7)
    assert measured.input_tokens is not None
    assert (measured.input_tokens.p50, measured.input_tokens.max, measured.rows_of_unknown_input) == (7.0, 7, 0)


def test_requests_in_any_order_have_one_shape() -> None:
    columns = [(3, 10, 1), (0, 20, 2), (1, 30, 3)]
    shuffled, in_order = (
        shape_of(*([row[column] for row in rows] for column in range(3))) for rows in (columns, sorted(columns))
    )
    assert shuffled == in_order


def test_shares_of_rows_that_fit_a_context_count_input_and_output() -> None:
    shape = describe([counted("a", 0, 1000, 24), counted("b", 1, 1000, 25), counted("c", 2, 4000, 97)])
    assert shape.fits_context == {1024: 1 / 3, 2048: 2 / 3, 4096: 2 / 3}


def test_requests_at_one_moment_have_neither_rate_nor_cv() -> None:
    shape = describe([counted("a", 3), counted("b", 3), counted("c", 3)])
    assert (shape.span_s, shape.rate_rps, shape.iat_cv, shape.output_tokens_per_s) == (0.0, None, None, None)
    assert shape.counts[0].peak_to_mean == 1.0


def test_no_requests_have_no_shape() -> None:
    with pytest.raises(ValueError, match="no shape"):
        describe([])
