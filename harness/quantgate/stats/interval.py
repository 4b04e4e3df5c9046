"""The two shapes in which every statistic of this package is returned."""

from __future__ import annotations

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
