"""Holm's correction for several tests."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: the i-th smallest of k is max over j <= i of (k - j + 1) p(j), at most 1.

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70. Controls the chance of any false alarm under
    every kind of dependence.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
