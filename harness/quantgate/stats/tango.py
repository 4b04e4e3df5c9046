"""Score interval for the difference of two paired proportions.

Source: T. Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample
design", Statistics in Medicine 17 (1998) 891-908.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from quantgate.stats.interval import Interval

_EDGE = 1e-12


def tango_score(only_baseline: float, only_candidate: float, n: float, difference: float) -> float:
    """Score statistic of H0: P(only the baseline right) - P(only the candidate right) = `difference`.

    With b = only_baseline, c = only_candidate and d = difference,
    T(d) = (b - c - n d) / sqrt(n (2 q + d (1 - d))), where q, the constrained maximum-likelihood estimate of
    P(only the candidate right), is (sqrt(B^2 - 4 A C) - B) / (2 A) with A = 2 n, B = -b - c + (2 n - b + c) d and
    C = -c d (1 - d). T falls as d grows; T(0) is McNemar's z.
    """
    b, c, d = only_baseline, only_candidate, difference
    a_term = 2 * n
    b_term = -b - c + (2 * n - b + c) * d
    c_term = -c * d * (1 - d)
    q = (math.sqrt(max(0.0, b_term**2 - 4 * a_term * c_term)) - b_term) / (2 * a_term)
    numerator = b - c - n * d
    variance = n * (2 * q + d * (1 - d))
    if variance <= 0:
        return math.copysign(math.inf, numerator) if numerator else 0.0
    return numerator / math.sqrt(variance)


def tango_scores(
    only_baseline: NDArray[np.float64], only_candidate: NDArray[np.float64], n: float, difference: float
) -> NDArray[np.float64]:
    """`tango_score` of many counts at once, for a difference of at least 0 and below 1."""
    b, c, d = only_baseline, only_candidate, difference
    b_term = -b - c + (2 * n - b + c) * d
    q = (np.sqrt(np.maximum(0.0, b_term**2 + 8 * n * c * d * (1 - d))) - b_term) / (4 * n)
    variance = n * (2 * q + d * (1 - d))
    # Without variance there is no discordant pair and no difference either: nothing speaks against it.
    return np.where(variance > 0, (b - c - n * d) / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)


def tango_interval(only_baseline: float, only_candidate: float, n: float, confidence: float = 0.95) -> Interval:
    """Interval of (only_baseline - only_candidate) / n: positive values mean that the candidate is worse.

    Counts may be fractions: `design_effect` divides them where items depend on each other.
    Raises ValueError where the counts are no counts of n > 0 pairs.
    """
    if n <= 0 or only_baseline < 0 or only_candidate < 0 or only_baseline + only_candidate > n * (1 + _EDGE):
        raise ValueError(f"no paired counts: b={only_baseline}, c={only_candidate}, n={n}")
    z = float(norm.ppf((1 + confidence) / 2))
    estimate = (only_baseline - only_candidate) / n
    return Interval(
        lower=_solve(only_baseline, only_candidate, n, target=z, start=-1.0, stop=estimate),
        upper=_solve(only_baseline, only_candidate, n, target=-z, start=estimate, stop=1.0),
    )


def tango_p_value(only_baseline: float, only_candidate: float, n: float, margin: float) -> float:
    """Two-sided p-value of "the loss does not exceed `margin`", from the same score as the interval."""
    return min(1.0, 2 * float(norm.sf(tango_score(only_baseline, only_candidate, n, margin))))


def _solve(b: float, c: float, n: float, *, target: float, start: float, stop: float) -> float:
    """Where the score crosses `target` between `start` and `stop`; the end of [-1, 1] where it never does."""
    low, high = max(start, -1 + _EDGE), min(stop, 1 - _EDGE)

    def excess(difference: float) -> float:
        return tango_score(b, c, n, difference) - target

    if low >= high:
        return stop if target < 0 else start
    if excess(low) * excess(high) > 0:
        return start if target > 0 else stop
    return float(brentq(excess, low, high, xtol=1e-14, rtol=1e-14, maxiter=500))
