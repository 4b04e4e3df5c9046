"""The chance that a score interval of counts decides against a margin, summed exactly over the counts.

At small n a score interval does not shrink with the root of n: without a single event in n pairs its limit is
z^2 / (n + z^2), so that a margin of 1 point needs 381 pairs, whatever a standard error would say.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from quantgate.stats.tango import tango_scores

Counts = NDArray[np.float64]

_LEFT_OUT = 1e-9
"""Probability of the counts that are left out of a sum at each end."""

_DIFFERENCE_STEP = 1e-4
"""Detectable differences are found to a hundredth of a point."""


def chance_to_decide_pairs(
    n: int, *, only_baseline: float, only_candidate: float, margin: float, confidence: float,
    either_way: bool = False, design_effect: float = 1.0,
) -> float:  # fmt: skip
    """P(Tango's interval of n pairs leaves the margin on the side on which the loss lies).

    only_baseline, only_candidate: probabilities that only that arm is right. either_way: the loss is the size of the
    difference. design_effect divides n, as it divides the counts of the interval. `margin` is at least 0 and below 1.
    """
    worse, better = only_baseline, only_candidate
    if either_way and better > worse:
        worse, better = better, worse
    size = max(1, round(n / design_effect))
    z = float(norm.ppf((1 + confidence) / 2))
    # Given the pairs in which the candidate alone is right, the others are binomial, and the score grows with them.
    c = np.arange(binom.ppf(_LEFT_OUT, size, better), binom.isf(_LEFT_OUT, size, better) + 1)
    weights, rest = binom.pmf(c, size, better), size - c
    given = min(1.0, worse / (1 - better)) if better < 1 else 0.0

    if worse - better >= margin:
        first = _first_true(lambda b: tango_scores(b, c, size, margin) > z, rest)
        return float((weights * binom.sf(first - 1, rest, given)).sum())
    first_undecided = _first_true(lambda b: tango_scores(b, c, size, margin) >= -z, rest)
    passing = binom.cdf(first_undecided - 1, rest, given)
    if either_way:
        first_inside = _first_true(lambda b: tango_scores(c, b, size, margin) < -z, rest)
        passing = np.maximum(0.0, passing - binom.cdf(first_inside - 1, rest, given))
    return float((weights * passing).sum())


def detectable_difference(
    power: float, *, n: int, noise: float, confidence: float, design_effect: float = 1.0
) -> float:
    """The smallest difference d that Tango's interval of n pairs holds above 0 with a chance of `power`.

    noise: the probability that only the candidate is right; only the baseline is with d more. Infinite where even the
    largest difference would not be found.
    """

    def found(d: float) -> bool:
        chance = chance_to_decide_pairs(
            n, only_baseline=noise + d, only_candidate=noise, margin=0.0, confidence=confidence,
            design_effect=design_effect,
        )  # fmt: skip
        return chance >= power

    low, high = 0.0, 1 - 2 * noise
    if high <= 0 or not found(high):
        return math.inf
    while high - low > _DIFFERENCE_STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def chance_to_decide_share(
    n: int, *, share: float, margin: float, confidence: float, design_effect: float = 1.0
) -> float:
    """P(Wilson's interval of n items leaves the margin on the side on which the share lies)."""
    size = max(1, round(n / design_effect))
    reach = float(norm.ppf((1 + confidence) / 2)) * math.sqrt(size * margin * (1 - margin))
    if share >= margin:
        return float(binom.sf(math.floor(size * margin + reach), size, share))
    return float(binom.cdf(math.ceil(size * margin - reach) - 1, size, share))


def _first_true(holds: Callable[[Counts], NDArray[np.bool_]], last: Counts) -> Counts:
    """Element by element the smallest count from 0 on for which `holds`; last + 1 where it holds up to `last` nowhere.

    `holds` must stay true once it is.
    """
    low, high = np.zeros_like(last), last + 1
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        true = holds(middle)
        high = np.where(true & (low < high), middle, high)
        low = np.where(~true & (low < high), middle + 1, low)
    return low
