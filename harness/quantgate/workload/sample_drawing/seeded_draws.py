"""Draws that stay the same over Python versions: built on `Random.random()` alone, whose sequence is guaranteed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import NormalDist
from typing import TypeVar

_Item = TypeVar("_Item")


class SeededDraws:
    """One independent stream of draws per purpose, so that a change in one part leaves the others alone."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._random = random.Random(f"{seed}:{purpose}")

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        return low + (high - low) * self._random.random()

    def exponential(self, mean: float) -> float:
        return -mean * math.log(1.0 - self._random.random())

    def lognormal(self, median: float, sigma: float) -> float:
        return median * math.exp(sigma * NormalDist().inv_cdf(self.uniform(1e-9, 1 - 1e-9)))

    def index(self, count: int) -> int:
        return int(self._random.random() * count)

    def choice(self, items: Sequence[_Item]) -> _Item:
        return items[self.index(len(items))]

    def shuffled(self, items: Sequence[_Item]) -> list[_Item]:
        """A shuffled copy (Fisher-Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.index(last + 1)
            result[last], result[other] = result[other], result[last]
        return result

    def stratified_lognormal(self, count: int, median: float, sigma: float) -> list[float]:
        """`count` lognormal values, one from each of `count` equally likely strata, in random order.

        The sample then has the distribution's shape without the luck of a small draw, so that totals hardly move.
        """
        values = [
            median * math.exp(sigma * NormalDist().inv_cdf((stratum + self.uniform(0.05, 0.95)) / count))
            for stratum in range(count)
        ]
        return self.shuffled(values)
