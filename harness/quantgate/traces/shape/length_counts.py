"""Percentiles of token lengths without holding the lengths: how often each one occurs is enough."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

from quantgate.traces.shape.batch import Integers

_COUNTED_BELOW = 1 << 20


@dataclass(frozen=True, slots=True)
class LengthPercentiles:
    """Tokens per request; percentiles are linearly interpolated between order statistics."""

    p50: float
    p90: float
    p95: float
    p99: float
    max: int


class LengthCounts:
    """Lengths of a million tokens and more, which hardly any row has, are kept one by one (8 bytes each)."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, dtype=np.int64)
        self._long = array("q")
        self.rows = 0
        self.tokens = 0

    def add(self, lengths: Integers) -> None:
        long = lengths >= _COUNTED_BELOW
        if long.any():
            self._long.extend(lengths[long].tolist())
            counted = np.bincount(lengths[~long])
        else:
            counted = np.bincount(lengths)
        if len(counted) > len(self._counts):
            self._counts.resize(len(counted), refcheck=False)
        self._counts[: len(counted)] += counted
        self.rows += len(lengths)
        self.tokens += int(lengths.sum())

    def share_up_to(self, tokens: int) -> float:
        """Of all rows, those of at most so many tokens (fewer than a million)."""
        return int(self._counts[: tokens + 1].sum()) / self.rows

    def percentiles(self) -> LengthPercentiles | None:
        """None where no length was added."""
        if not self.rows:
            return None
        up_to = np.cumsum(self._counts)
        long = sorted(self._long)

        def at(rank: int) -> int:
            short = self.rows - len(long)
            return int(np.searchsorted(up_to, rank, side="right")) if rank < short else long[rank - short]

        def percentile(percent: int) -> float:
            rank = (self.rows - 1) * (percent / 100)
            lower, upper = at(int(rank)), at(min(int(rank) + 1, self.rows - 1))
            # To the last bit what numpy.percentile makes of the lengths themselves.
            share = rank - int(rank)
            step = upper - lower
            return upper - step * (1 - share) if share >= 0.5 else lower + step * share

        return LengthPercentiles(
            p50=percentile(50), p90=percentile(90), p95=percentile(95), p99=percentile(99), max=at(self.rows - 1)
        )
