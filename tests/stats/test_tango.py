"""Tango's interval against closed forms, published values and an independent maximisation of the likelihood."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from quantgate.stats.tango import tango_interval, tango_p_value, tango_score


@pytest.mark.parametrize("n", [1, 20, 200, 1319])
def test_without_discordant_pairs_the_limit_has_a_closed_form(n: int) -> None:
    z_squared = norm.ppf(0.975) ** 2
    lower, upper = tango_interval(0, 0, n)
    assert upper == pytest.approx(z_squared / (n + z_squared), abs=1e-9)
    assert lower == pytest.approx(-upper, abs=1e-9)


@pytest.mark.parametrize(
    ("b", "c", "n", "upper_pp"), [(0, 0, 200, 1.33), (5, 5, 200, 2.89), (10, 8, 400, 2.39), (12, 4, 282, 5.47)]
)
def test_one_sided_limits_computed_elsewhere(b: int, c: int, n: int, upper_pp: float) -> None:
    assert 100 * tango_interval(b, c, n, confidence=0.90).upper == pytest.approx(upper_pp, abs=0.005)


def test_the_published_airway_example() -> None:
    """Fagerland, Lydersen and Laake, Statistics in Medicine 33 (2014) 2850-2875: b=1, c=7, n=21: -0.517 to -0.026."""
    assert tango_interval(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_at_zero_the_score_is_mcnemars() -> None:
    assert tango_score(12, 4, 282, 0.0) == pytest.approx((12 - 4) / math.sqrt(12 + 4), abs=1e-12)


def test_all_pairs_discordant_reach_the_end_of_the_scale() -> None:
    assert tango_interval(21, 0, 21).upper == 1
    assert tango_interval(0, 21, 21).lower == -1


@given(st.integers(2, 300), st.data())
def test_the_constrained_estimate_maximises_the_likelihood(n: int, data: st.DataObject) -> None:
    """The score of the profile likelihood, maximised numerically, equals the closed form."""
    b = data.draw(st.integers(1, n - 1))
    c = data.draw(st.integers(1, n - b)) if b < n else 0
    difference = data.draw(st.floats(-0.8, 0.8))

    def loss(q: float) -> float:
        return -(
            b * math.log(q + difference) + c * math.log(q) + (n - b - c) * math.log(max(1 - 2 * q - difference, 1e-300))
        )

    low, high = max(0.0, -difference), (1 - difference) / 2
    best = minimize_scalar(loss, bounds=(low + 1e-12, high - 1e-12), method="bounded", options={"xatol": 1e-12})
    variance = n * (2 * best.x + difference * (1 - difference))
    assert tango_score(b, c, n, difference) == pytest.approx(
        (b - c - n * difference) / math.sqrt(variance), rel=2e-3, abs=1e-6
    )


@given(st.integers(1, 400), st.data())
def test_interval_mirrors_holds_the_estimate_and_agrees_with_the_p_value(n: int, data: st.DataObject) -> None:
    b = data.draw(st.integers(0, n))
    c = data.draw(st.integers(0, n - b))
    lower, upper = tango_interval(b, c, n)
    assert -1 <= lower <= (b - c) / n <= upper <= 1
    mirrored = tango_interval(c, b, n)
    assert (lower, upper) == pytest.approx((-mirrored.upper, -mirrored.lower), abs=1e-9)
    margin = data.draw(st.floats(0.001, 0.5))
    if abs(lower - margin) > 1e-6:
        assert (tango_p_value(b, c, n, margin) < 0.05) == (lower > margin)


def test_coverage_is_near_nominal() -> None:
    rng = np.random.default_rng(7)
    n, p_b, p_c = 100, 0.10, 0.05
    draws = rng.multinomial(n, [p_b, p_c, 1 - p_b - p_c], size=600)
    held = [tango_interval(int(b), int(c), n) for b, c, _ in draws]
    covered = np.mean([interval.lower <= p_b - p_c <= interval.upper for interval in held])
    assert 0.925 <= covered <= 0.985


@pytest.mark.parametrize(("b", "c", "n"), [(0, 0, 0), (-1, 0, 5), (3, 3, 5)])
def test_impossible_counts_are_refused(b: int, c: int, n: int) -> None:
    with pytest.raises(ValueError, match="no paired counts"):
        tango_interval(b, c, n)
