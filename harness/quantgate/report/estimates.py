"""Numbers with the interval that this run's sample gives them, for display; the gate has its own paired ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quantgate.stats.bootstrap import bootstrap_means, difference
from quantgate.stats.clusters import cluster_numbers
from quantgate.stats.interval import Interval
from quantgate.stats.percentile import percentile as percentile_of
from quantgate.stats.percentile import percentile_interval
from quantgate.stats.wilson import wilson_interval

CONFIDENCE = 0.95
_RESAMPLES = 1000
_SEED = 20_240_517
_FEWEST_CLUSTERS = 6

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval; limits of None where the sample carries none."""

    value: float
    low: float | None
    high: float | None
    n: int


def percentile(values: Array, quantile: float) -> Estimate | None:
    """A percentile with its order-statistic interval; None where n is too small for one (no number at all then)."""
    interval = percentile_interval(values, quantile, CONFIDENCE)
    if interval is None:
        return None
    return Estimate(percentile_of(values, quantile), interval.lower, interval.upper, len(values))


def proportion(successes: int, n: int) -> Estimate | None:
    """successes / n with Wilson's interval; None for n = 0."""
    if n == 0:
        return None
    interval = wilson_interval(successes, n, CONFIDENCE)
    return Estimate(successes / n, interval.lower, interval.upper, n)


def mean_by_cluster(values: Array, labels: list[str]) -> Estimate | None:
    """Mean of `values` [n] with a bootstrap interval over clusters `labels` [n]; None for n = 0."""
    if not len(values):
        return None
    clusters = cluster_numbers(labels)
    loss = bootstrap_means(np.zeros(len(values)), values, clusters, difference, margin=0.0,
                           confidence=CONFIDENCE, resamples=_RESAMPLES, seed=_SEED)  # fmt: skip
    return _estimate(loss.value, loss.interval, len(values), int(clusters.max()) + 1)


def ratio_of_sums(numerators: Array, denominators: Array, clusters: NDArray[np.int64]) -> Estimate | None:
    """sum(numerators) / sum(denominators), both [n], with a bootstrap interval over clusters [n] of neighbours.

    None where there is nothing to divide by.
    """
    if not denominators.sum() > 0:
        return None
    loss = bootstrap_means(denominators, numerators, clusters, _quotient, margin=0.0,
                           confidence=CONFIDENCE, resamples=_RESAMPLES, seed=_SEED)  # fmt: skip
    return _estimate(loss.value, loss.interval, len(numerators), int(clusters.max()) + 1)


def _quotient(denominators: Array, numerators: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerators / denominators


def _estimate(value: float, interval: Interval, n: int, clusters: int) -> Estimate:
    enough = clusters >= _FEWEST_CLUSTERS and all(map(math.isfinite, interval))
    return Estimate(value, interval.lower if enough else None, interval.upper if enough else None, n)
