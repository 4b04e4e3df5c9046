"""How many requests each stratum of a sample gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Allocation = Literal["proportional", "equal"]


def allocate(sizes: Mapping[str, int], total: int, allocation: Allocation) -> dict[str, int]:
    """Whole numbers that add up to `total` (at most the sum of the sizes), none above its stratum's size.

    Shares are rounded by the largest remainder (Hamilton's method), ties in the order of `sizes`. What a stratum cannot
    give is shared among the others in the same way. Where `total` allows it, no stratum stays empty: a task that the
    sample lost could not be judged at all.
    """
    quotas = dict.fromkeys(sizes, 1 if total >= len(sizes) else 0)
    left = total - sum(quotas.values())
    while left > 0:
        open_strata = [name for name in sizes if quotas[name] < sizes[name]]
        shares = _shares(sizes, quotas, open_strata, left, allocation)
        for name, more in shares.items():
            quotas[name] += min(more, sizes[name] - quotas[name])
        left = total - sum(quotas.values())
    return quotas


def _shares(
    sizes: Mapping[str, int], quotas: Mapping[str, int], names: list[str], left: int, allocation: Allocation
) -> dict[str, int]:
    """`left` split among the strata so that quotas come nearest to the allocation; at least one gets at least one."""
    weights = {name: sizes[name] if allocation == "proportional" else 1 for name in names}
    target = left + sum(quotas[name] for name in names)
    exact = {name: max(0.0, target * weights[name] / sum(weights.values()) - quotas[name]) for name in names}
    scale = left / sum(exact.values())
    shares = {name: int(exact[name] * scale) for name in names}
    by_remainder = sorted(names, key=lambda name: shares[name] - exact[name] * scale)
    for name in by_remainder[: left - sum(shares.values())]:
        shares[name] += 1
    return shares
