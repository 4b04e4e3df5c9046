"""Percentiles with distribution-free intervals, and the n below which a percentile has none."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from quantgate.stats.interval import Interval


def percentile(values: NDArray[np.float64], quantile: float) -> float:
    """The smallest value with at least `quantile` of the values at or below it (inverse of the empirical CDF)."""
    return float(np.quantile(values, quantile, method="inverted_cdf"))


def minimum_n(quantile: float, confidence: float = 0.95) -> int:
    """The smallest n for which a two-sided order-statistic interval of the percentile exists.

    Both ends must be observations: q^n and (1 - q)^n at most (1 - confidence) / 2. At 95 %: 6 for the median, 72 for
    p95, 368 for p99.
    """
    tail = math.log((1 - confidence) / 2)
    return math.ceil(max(tail / math.log(quantile), tail / math.log1p(-quantile)) - 1e-9)


def percentile_interval(values: NDArray[np.float64], quantile: float, confidence: float = 0.95) -> Interval | None:
    """Interval between two order statistics, coverage at least `confidence`; None where n cannot carry it.

    Ranks (from 1): the largest l with P[Bin(n, q) <= l - 1] <= a/2 and the smallest u with P[Bin(n, q) >= u] <= a/2,
    a = 1 - confidence. Source: G. J. Hahn and W. Q. Meeker, "Statistical Intervals" (1991), section 5.2.
    """
    n = len(values)
    if n < minimum_n(quantile, confidence):
        return None
    tail = (1 - confidence) / 2
    lower_rank = int(binom.ppf(tail, n, quantile))
    while lower_rank > 0 and binom.cdf(lower_rank - 1, n, quantile) > tail:
        lower_rank -= 1
    upper_rank = int(binom.isf(tail, n, quantile)) + 1
    while upper_rank > 1 and binom.sf(upper_rank - 2, n, quantile) <= tail:
        upper_rank -= 1
    ordered = np.sort(values)
    return Interval(float(ordered[max(lower_rank, 1) - 1]), float(ordered[min(upper_rank, n) - 1]))
