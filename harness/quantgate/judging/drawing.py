"""Draws a sample that holds every kind of request in proportion, whatever its size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")
Stratum = TypeVar("Stratum", bound=tuple[str, ...])


def stratified_order(items: Sequence[Item], stratum: Callable[[Item], Stratum], seed: int) -> list[Item]:
    """All items in an order whose every prefix is a stratified sample, so that a larger sample holds the smaller one.

    Each stratum is shuffled and spread evenly over [0, 1) from a random start (systematic sampling); among the first k
    of n items, a stratum of size m has k m / n of them to within one for each other stratum's rounding.
    """
    strata: dict[Stratum, list[Item]] = defaultdict(list)
    for item in items:
        strata[stratum(item)].append(item)
    random = Random(seed)
    placed: list[tuple[float, Item]] = []
    for name in sorted(strata):
        members = strata[name]
        random.shuffle(members)
        start = random.random()
        placed += [((rank + start) / len(members), item) for rank, item in enumerate(members)]
    placed.sort(key=lambda entry: entry[0])
    return [item for _, item in placed]
