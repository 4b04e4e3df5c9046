"""The two shapes in which every statistic of this package is returned."""

from __future__ import annotations

import math
from typing import NamedTuple


class Interval(NamedTuple):
    """A two-sided confidence interval, equal error on both sides."""

    lower: float
    upper: float


class LossEstimate(NamedTuple):
    """A loss with its uncertainty, and how surprising it is that it exceeds a margin.

    `p_value` is two-sided for "the loss does not exceed the margin" and agrees with the interval: it lies below
    1 - confidence exactly where the lower limit lies above the margin.
    """

    value: float
    interval: Interval
    standard_error: float
    p_value: float


def size_of_change(worse: LossEstimate, reverse: LossEstimate) -> LossEstimate:
    """The size of a change whose direction does not matter, from its two signed readings.

    The interval of the signed change is folded at zero; folding only widens its coverage.
    """
    lower, upper = worse.interval
    larger = max(worse, reverse, key=lambda estimate: estimate.value)
    return larger._replace(interval=Interval(max(0.0, lower, -upper), max(abs(lower), abs(upper))))


def without_upper_limit(seen: LossEstimate) -> LossEstimate:
    """A loss that may be any amount larger than what was seen of it: only its lower limit stands."""
    return seen._replace(interval=Interval(seen.interval.lower, math.inf), standard_error=math.inf)
