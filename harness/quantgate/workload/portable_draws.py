"""Random numbers that are the same on every machine and under every version of Python and numpy.

`random` documents that seeding by text and `random()` stay the same over versions; its other distributions promise
nothing, and numpy's may change with any release. So everything else is made here out of `random()` by operations that
have one right result: comparisons, arithmetic and square roots of IEEE doubles, and, where gamma draws need them,
logarithm and exponential by `decimal`, which documents correct rounding where a C library may be off in the last bit.
"""

from __future__ import annotations

import math
import random
from decimal import Context, Decimal

# More digits than a double holds: the result is that of infinitely many, rounded.
_DIGITS = Context(prec=25)


class PortableDraws:
    """One stream of draws; the same text gives the same stream."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def uniform(self) -> float:
        """From 0 to below 1."""
        return self._random()

    def below(self, count: int) -> int:
        """One of 0 to count - 1, all alike but for the rounding of a double."""
        return min(int(self._random() * count), count - 1)

    def exponential(self) -> float:
        """Of mean 1, by von Neumann's comparisons (Various techniques used in connection with random digits, 1951).

        A falling run of uniform draws that begins with x ends after an odd number of them with probability exp(-x).
        """
        whole = 0.0
        while True:
            first = last = self._random()
            odd = True
            while (drawn := self._random()) < last:
                last = drawn
                odd = not odd
            if odd:
                return whole + first
            whole += 1.0

    def normal(self) -> float:
        """Of mean 0 and variance 1: a point at a random angle, whose squared distance is twice an exponential draw."""
        while True:
            x, y = 2.0 * self._random() - 1.0, 2.0 * self._random() - 1.0
            square = x * x + y * y
            if 0.0 < square < 1.0:
                return x * math.sqrt(2.0 * self.exponential() / square)

    def gamma(self, shape: float) -> float:
        """Of scale 1 (Marsaglia and Tsang, ACM Transactions on Mathematical Software 26, 2000).

        A shape below 1 takes a draw of the shape above it times U^(1 / shape), as they advise.
        """
        if shape < 1.0:
            return self.gamma(shape + 1.0) * _exp(-self.exponential() / shape)
        d = shape - 1.0 / 3.0
        c = 1.0 / math.sqrt(9.0 * d)
        while True:
            x = self.normal()
            root = 1.0 + c * x
            if root <= 0.0:
                continue
            v = root * root * root
            square = x * x
            # Above 0, so that it has a logarithm.
            uniform = 1.0 - self._random()
            # The first condition implies the second, and spares most draws its logarithms.
            if uniform < 1.0 - 0.0331 * square * square or _log(uniform) < 0.5 * square + d * (1.0 - v + _log(v)):
                return d * v


def _log(value: float) -> float:
    return float(Decimal(value).ln(_DIGITS))


def _exp(value: float) -> float:
    return float(Decimal(value).exp(_DIGITS))
