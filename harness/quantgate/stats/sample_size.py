"""How many items would decide a rule, from its chance to be decided with n items."""

from __future__ import annotations

from collections.abc import Callable

ChanceWithN = Callable[[int], float]
"""n items -> the chance that a rule is decided with them, if they behave as those seen."""

_NEVER = 10**7


def needed_n(chance: ChanceWithN, *, above: int, power: float) -> int | None:
    """An n above `above` that decides with at least `power`, and about the smallest one; None beyond ten millions.

    Chances of counts do not grow evenly with n. The n that comes out has the chance that is asked for, and some n a
    little below it may have it too.
    """
    low, high = above, above + 1
    while chance(high) < power:
        if high >= _NEVER:
            return None
        low, high = high, min(2 * high, _NEVER)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return high
