"""Items that depend on each other: how they are grouped, and what the dependence costs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

_CLUSTERS_AIMED_AT = 24
_LONGEST_RUN = 20


def cluster_numbers(labels: Sequence[Hashable]) -> NDArray[np.int64]:
    """Labels as numbers 0..k-1 in order of first appearance."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)


def cluster_count(clusters: NDArray[np.int64]) -> int:
    """How many different clusters the items are of."""
    return len(np.unique(clusters))


def run_length(n: int) -> int:
    """How many consecutive requests make one cluster: requests that wait in one queue share its state.

    About 24 clusters, which the bootstrap's small-sample correction can carry, of at most 20 requests.
    """
    return int(np.clip(np.ceil(n / _CLUSTERS_AIMED_AT), 1, _LONGEST_RUN))


def design_effect(values: NDArray[np.float64], clusters: NDArray[np.int64]) -> float:
    """Variance of the mean by cluster over its variance by item; at least 1, so that it never flatters.

    deff = [k/(k-1) sum_j e_j^2 / n^2] / [s^2 / n], e_j = sum of a cluster's deviations from the mean.
    Source: J. N. K. Rao and A. J. Scott, Biometrics 48 (1992) 577-585.
    """
    n = len(values)
    deviations = values - values.mean()
    by_item = float((deviations**2).sum()) / (n - 1) / n if n > 1 else 0.0
    sums = np.bincount(clusters, weights=deviations)
    k = len(sums)
    if by_item == 0 or k < 2:
        return 1.0
    by_cluster = k / (k - 1) * float((sums**2).sum()) / n**2
    return max(1.0, by_cluster / by_item)
