"""How far one of two opposite outcomes outweighs the other, over pairs that may show neither."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quantgate.stats.clusters import design_effect
from quantgate.stats.interval import Interval
from quantgate.stats.tango import tango_interval


class NetShare(NamedTuple):
    """value: share of pairs that show the one outcome, less the share that shows the other."""

    value: float
    interval: Interval
    n: int


class WinShare(NamedTuple):
    """share: part of the wins that went to the one side; 0.5 is a draw. n: pairs that were won by either."""

    share: float
    interval: Interval
    n: int


def net_share(
    one: NDArray[np.bool_], other: NDArray[np.bool_], clusters: NDArray[np.int64], confidence: float
) -> NetShare | None:
    """`one`, `other`, `clusters`: [n], the first two never true together. None for n = 0.

    The counts of the two outcomes are those of discordant pairs, so that Tango's interval serves; where items depend
    on each other, the design effect divides the counts, as for every paired binary rule of the gate.
    """
    n = len(one)
    if n == 0:
        return None
    effect = design_effect(one.astype(np.float64) - other, clusters)
    counts = float(one.sum()), float(other.sum())
    interval = tango_interval(counts[0] / effect, counts[1] / effect, n / effect, confidence)
    return NetShare((counts[0] - counts[1]) / n, interval, n)


def as_win_share(net: NetShare | None) -> WinShare | None:
    """(1 + net share) / 2, and its limits alike: of two wins a pair, or of one, the part that goes to the one side."""
    if net is None:
        return None
    lower, upper = net.interval
    return WinShare((1 + net.value) / 2, Interval((1 + lower) / 2, (1 + upper) / 2), net.n)
