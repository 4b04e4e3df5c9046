"""McNemar, Wilson, Holm and order statistics against scipy and worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from quantgate.stats.holm import holm
from quantgate.stats.mcnemar import mcnemar_exact
from quantgate.stats.percentile import minimum_n, percentile, percentile_interval
from quantgate.stats.wilson import wilson_interval, wilson_p_value


@pytest.mark.parametrize(("b", "c", "p"), [(5, 0, 0.031), (9, 2, 0.033), (20, 10, 0.049)])
def test_mcnemar_values_computed_elsewhere(b: int, c: int, p: float) -> None:
    assert mcnemar_exact(b, c) == pytest.approx(p, abs=5e-4)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test(b: int, c: int) -> None:
    expected = binomtest(b, b + c, 0.5, alternative="greater").pvalue if b + c else 1.0
    assert mcnemar_exact(b, c) == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 500), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_scipys(n: int, data: st.DataObject, confidence: float) -> None:
    k = data.draw(st.integers(0, n))
    expected = binomtest(k, n).proportion_ci(confidence, method="wilson")
    assert wilson_interval(k, n, confidence) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.integers(1, 300), st.data())
def test_wilsons_p_value_agrees_with_its_interval(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    share = data.draw(st.floats(0.01, 0.99))
    lower = wilson_interval(k, n).lower
    if abs(lower - share) > 1e-6:
        assert (wilson_p_value(k, n, share) < 0.05) == (lower > share)


def test_holm_worked_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], abs=1e-12)
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    rejected = set()
    for step, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if (len(p_values) - step) * p_values[index] >= 0.05:
            break
        rejected.add(index)
    assert {index for index, p in enumerate(adjusted) if p < 0.05} == rejected


def test_least_n_of_a_percentile() -> None:
    assert [minimum_n(quantile) for quantile in (0.5, 0.95, 0.99)] == [6, 72, 368]


def test_the_textbook_interval_of_a_median() -> None:
    """n = 100: the 40th and the 61st order statistic (Hahn and Meeker, table A.15)."""
    assert percentile_interval(np.arange(1.0, 101.0), 0.5) == (40, 61)


@pytest.mark.parametrize(("quantile", "least"), [(0.5, 6), (0.95, 72), (0.99, 368)])
def test_below_the_least_n_there_is_no_interval(quantile: float, least: int) -> None:
    assert percentile_interval(np.arange(float(least - 1)), quantile) is None
    interval = percentile_interval(np.arange(float(least)), quantile)
    assert interval is not None
    assert interval.upper == least - 1


@given(st.integers(6, 600), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_ranks_are_the_tightest_that_keep_each_tail(n: int, quantile: float) -> None:
    interval = percentile_interval(np.arange(1.0, n + 1), quantile)
    if interval is None:
        assert n < minimum_n(quantile)
        return
    lower, upper = int(interval.lower), int(interval.upper)
    assert binom.cdf(lower - 1, n, quantile) <= 0.025 + 1e-12
    assert binom.cdf(lower, n, quantile) > 0.025 - 1e-12
    assert binom.sf(upper - 1, n, quantile) <= 0.025 + 1e-12
    assert binom.sf(upper - 2, n, quantile) > 0.025 - 1e-12


def test_a_percentile_is_an_observation() -> None:
    values = np.array([5.0, 1.0, np.inf, 3.0])
    assert percentile(values, 0.5) == 3
    assert percentile(values, 0.95) == np.inf
