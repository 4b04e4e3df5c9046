"""Paired bootstrap by cluster: intervals for means, ratios and percentiles.

Both arms' values of one item stay together and items of one cluster stay together. Limits are expanded percentiles
(T. C. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69 (2015) 371-386,
section 5.2): the percentile interval's tail a/2 becomes Phi(-sqrt(k/(k-1)) t(1 - a/2; k-1)) for k clusters, which
undoes its narrowness where clusters are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from quantgate.stats.interval import Interval, LossEstimate

Array = NDArray[np.float64]
Compare = Callable[[Array, Array], Array]
"""Turns the arms' statistics (baseline, candidate) into losses, element by element; positive means worse."""

_CELLS_AT_ONCE = 2_000_000


def difference(baseline: Array, candidate: Array) -> Array:
    """candidate - baseline, 0 where both are infinite (every request of both arms failed)."""
    both = np.isinf(baseline) & np.isinf(candidate)
    with np.errstate(invalid="ignore"):
        return np.where(both, 0.0, candidate - baseline)


def relative(baseline: Array, candidate: Array) -> Array:
    """candidate / baseline - 1, 0 where both are infinite; the caller sees to it that the baseline is positive."""
    both = np.isinf(baseline) & np.isinf(candidate)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(both, 0.0, candidate / baseline - 1)


def bootstrap_means(
    baseline: Array, candidate: Array, clusters: NDArray[np.int64], compare: Compare, *,
    margin: float, confidence: float, resamples: int, seed: int,
) -> LossEstimate:  # fmt: skip
    """Loss between the arms' means. `baseline`, `candidate`, `clusters`: [n], aligned item by item."""
    sizes = np.bincount(clusters).astype(np.float64)
    sums = np.bincount(clusters, weights=baseline), np.bincount(clusters, weights=candidate)
    replicates = np.concatenate(
        [
            compare(draws @ sums[0] / (draws @ sizes), draws @ sums[1] / (draws @ sizes))
            for draws in _draws(len(sizes), len(sizes), resamples, seed)
        ]
    )
    value = compare(np.array([baseline.mean()]), np.array([candidate.mean()]))[0]
    return _estimate(float(value), replicates, len(sizes), margin, confidence)


def bootstrap_percentiles(
    baseline: Array, candidate: Array, clusters: NDArray[np.int64], compare: Compare, *,
    quantile: float, margin: float, confidence: float, resamples: int, seed: int,
) -> LossEstimate:  # fmt: skip
    """Loss between the arms' percentiles. Infinite values (failed requests) sort last and are allowed."""
    cluster_count = int(clusters.max()) + 1
    orders = np.argsort(baseline, kind="stable"), np.argsort(candidate, kind="stable")
    replicates = []
    for draws in _draws(cluster_count, len(baseline), resamples, seed):
        weights = draws[:, clusters]
        replicates.append(
            compare(
                _weighted_percentile(baseline, orders[0], weights, quantile),
                _weighted_percentile(candidate, orders[1], weights, quantile),
            )
        )
    value = compare(
        np.quantile(baseline, [quantile], method="inverted_cdf"),
        np.quantile(candidate, [quantile], method="inverted_cdf"),
    )[0]
    return _estimate(float(value), np.concatenate(replicates), cluster_count, margin, confidence)


def _draws(clusters: int, width: int, resamples: int, seed: int) -> Iterator[Array]:
    """How often each cluster was drawn, [some resamples, clusters], in chunks that bound memory."""
    generator = np.random.default_rng(seed)
    chunk = max(1, _CELLS_AT_ONCE // max(width, clusters))
    for start in range(0, resamples, chunk):
        count = min(chunk, resamples - start)
        yield generator.multinomial(clusters, np.full(clusters, 1 / clusters), size=count).astype(np.float64)


def _weighted_percentile(values: Array, order: NDArray[np.int64], weights: Array, quantile: float) -> Array:
    """Per resample the smallest value whose cumulated weight reaches `quantile` of all; weights [resamples, n]."""
    cumulated = np.cumsum(weights[:, order], axis=1)
    # Weights are whole numbers; the small step back keeps a product such as 0.95 * 100 from passing its integer.
    position = (cumulated >= quantile * cumulated[:, -1:] - 1e-9).argmax(axis=1)
    ordered: Array = values[order]
    return np.asarray(ordered[position], dtype=np.float64)


def _estimate(value: float, replicates: Array, clusters: int, margin: float, confidence: float) -> LossEstimate:
    if clusters < 2:
        return LossEstimate(value, Interval(-math.inf, math.inf), math.inf, 1.0)
    expansion = math.sqrt(clusters / (clusters - 1))
    tail = float(norm.cdf(expansion * t.ppf((1 - confidence) / 2, clusters - 1)))
    ordered = np.sort(replicates)
    # Order statistics instead of interpolation: an infinite replicate has no weighted mean with its neighbour.
    below = int(np.floor(tail * len(ordered)))
    interval = Interval(float(ordered[below]), float(ordered[-1 - below]))
    finite = ordered[np.isfinite(ordered)]
    error = float(finite.std(ddof=1)) if len(finite) == len(ordered) else math.inf
    share = _share_at_or_below(ordered, value, error, margin)
    one_sided = float(t.cdf(norm.ppf(share) / expansion, clusters - 1))
    return LossEstimate(value, interval, error, min(1.0, 2 * one_sided))


def _share_at_or_below(ordered: Array, value: float, error: float, margin: float) -> float:
    """Bootstrap share of losses that do not exceed the margin, by the normal tail where no replicate is that low.

    Without the tail, a loss far beyond the margin could never be surer than one in the number of resamples, and
    Holm's correction over many rules could not confirm it.
    """
    count = int(np.searchsorted(ordered, margin, side="right"))
    if count or not value > margin:
        return count / len(ordered)
    at_most = 1 / (len(ordered) + 1)
    if error == 0:
        return 0.0
    return min(at_most, float(norm.cdf((margin - value) / error))) if math.isfinite(error) else at_most
