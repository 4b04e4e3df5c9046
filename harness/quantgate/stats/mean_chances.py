"""The chance that a bootstrap interval of a mean or a percentile decides against a margin with more items."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.stats import norm, t

from quantgate.stats.clusters import run_length
from quantgate.stats.interval import LossEstimate

ClusterCount = Callable[[float], float]
"""n items -> how many clusters they make, up to a constant."""


def clusters_by_item(n: float) -> float:
    """Clusters of task items and sequences keep their size: more items make more of them."""
    return n


def clusters_by_run(n: float) -> float:
    """Clusters of neighbouring requests, which grow first (`run_length`)."""
    return n / run_length(math.ceil(n))


def chance_to_decide_mean(
    n: int, seen: LossEstimate, *, seen_n: int, clusters: int, clusters_with: ClusterCount, margin: float,
    confidence: float, either_way: bool = False,
) -> float:  # fmt: skip
    """P(the interval with n items leaves the margin on the side on which the loss lies); 0 where nothing bounds it.

    The standard error shrinks with the root of n. So does the part of the interval that faces the margin, which keeps
    its skewness and loses what the bootstrap adds for few clusters (see `bootstrap`):
    P = Phi((|margin - loss| - part) / standard error). either_way: the loss is the size of a change, which may also
    leave the margin at its other end.
    """
    fails = seen.value >= margin
    facing = abs((seen.interval.lower if fails else seen.interval.upper) - seen.value)
    if not (math.isfinite(facing) and math.isfinite(seen.standard_error)) or clusters < 2:
        return 0.0
    shrinking = math.sqrt(seen_n / n)
    clusters_then = max(2.0, clusters * clusters_with(n) / clusters_with(seen_n))
    part = facing * shrinking * _critical(clusters_then, confidence) / _critical(clusters, confidence)
    error = seen.standard_error * math.sqrt(clusters / (clusters - 1)) * shrinking
    room = abs(margin - seen.value) - part
    if error == 0:
        return float(room > 0)
    chance = float(norm.cdf(room / error))
    if either_way and not fails:
        chance -= float(norm.cdf((part - margin - seen.value) / error))
    return max(0.0, chance)


def _critical(clusters: float, confidence: float) -> float:
    return math.sqrt(clusters / (clusters - 1)) * float(t.ppf((1 + confidence) / 2, clusters - 1))
