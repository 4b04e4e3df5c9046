"""How evenly requests come: the coefficient of variation of the gaps between them, exactly and in constant memory."""

from __future__ import annotations

import math

import numpy as np

from quantgate.traces.shape.batch import Integers

_LIMB_BITS = 20
_LIMB = (1 << _LIMB_BITS) - 1


class Gaps:
    """Integer sums over the gaps, so that the figure does not depend on how rows were cut into batches."""

    def __init__(self) -> None:
        self._count = 0
        self._squares = 0
        self._first_ns = 0
        self._last_ns: int | None = None

    @property
    def span_ns(self) -> int:
        """From the first to the last arrival."""
        return 0 if self._last_ns is None else self._last_ns - self._first_ns

    def add(self, times_ns: Integers) -> None:
        """Times in order, none before those that were added earlier."""
        if self._last_ns is None:
            self._first_ns = self._last_ns = int(times_ns[0])
            gaps = np.diff(times_ns)
        else:
            gaps = np.diff(times_ns, prepend=self._last_ns)
        self._count += len(gaps)
        self._squares += sum_of_squares(gaps)
        self._last_ns = int(times_ns[-1])

    def variation(self) -> float | None:
        """Standard deviation over mean (1 for a Poisson process); None below two gaps or where all are 0."""
        if self._count < 2 or self.span_ns == 0:
            return None
        return math.sqrt((self._count * self._squares - self.span_ns**2) / self.span_ns**2)


def sum_of_squares(values: Integers) -> int:
    """Exact for up to `MOST_ROWS` values from 0 to 2**60: products of limbs of 20 bits sum to less than 2**61."""
    limbs = (values & _LIMB, (values >> _LIMB_BITS) & _LIMB, values >> 2 * _LIMB_BITS)
    return sum(
        int(np.dot(left, right)) << _LIMB_BITS * (left_rank + right_rank)
        for left_rank, left in enumerate(limbs)
        for right_rank, right in enumerate(limbs)
    )
