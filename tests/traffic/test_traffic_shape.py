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
        "input_tokens": {"p50": 3.0, "p95": pytest.approx(4.8), "p99": pytest.approx(4.96), "max": 5},
        "output_tokens": {"p50": 30.0, "p95": pytest.approx(48.0), "p99": pytest.approx(49.6), "max": 50},
    }


def test_a_poisson_process_has_a_cv_of_one() -> None:
    times = np.cumsum(np.random.default_rng(1).exponential(SECOND, 50_000)).astype(int).tolist()
    shape = shape_of(times, None, [1] * len(times))
    assert shape.iat_cv == pytest.approx(1.0, abs=0.02)
    assert shape.rate_rps == pytest.approx(1.0, abs=0.02)


def test_lengths_that_nobody_knows_are_not_guessed() -> None:
    text = counted("a", prompt=1)
    object.__setattr__(text, "prompt_token_count", None)
    assert describe([text, counted("b")]).input_tokens is None
    measured = describe([text, counted("b")], lambda record: 7).input_tokens
    assert measured is not None
    assert (measured.p50, measured.max) == (7.0, 7)


def test_requests_at_one_moment_have_neither_rate_nor_cv() -> None:
    shape = describe([counted("a", 3), counted("b", 3), counted("c", 3)])
    assert (shape.span_s, shape.rate_rps, shape.iat_cv) == (0.0, None, None)


def test_no_requests_have_no_shape() -> None:
    with pytest.raises(ValueError, match="no shape"):
        describe([])
