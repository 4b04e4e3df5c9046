"""Draws whole sessions and single requests out of the strata of a sample."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from quantgate.traces.record import TraceRecord
from quantgate.workload.transforms.sessions import unit_key

Unit = Sequence[TraceRecord]


def choose_units(strata: Mapping[str, Sequence[Unit]], quotas: Mapping[str, int], seed: int) -> dict[str, list[Unit]]:
    """Units of each stratum in seeded order while they fit its quota, then units of any stratum that fit what is left.

    A session that is larger than what is left is passed over, so that the quotas' sum is never exceeded.
    """
    chosen: dict[str, list[Unit]] = {name: [] for name in strata}
    passed_over: list[tuple[float, str, Unit]] = []
    left_over = 0
    for name, units in strata.items():
        left = quotas[name]
        for draw, unit in sorted(((_draw(unit, seed), unit) for unit in units), key=lambda pair: pair[0]):
            if len(unit) <= left:
                chosen[name].append(unit)
                left -= len(unit)
            else:
                passed_over.append((draw, name, unit))
        left_over += left
    for _, name, unit in sorted(passed_over, key=lambda entry: entry[0]):
        if len(unit) <= left_over:
            chosen[name].append(unit)
            left_over -= len(unit)
    return chosen


def _draw(unit: Unit, seed: int) -> float:
    """Depends on the seed and the unit's name alone, so that other rows of a log change nothing."""
    kind, name = unit_key(unit[0])
    return random.Random(f"sample:{seed}:{kind}:{name}").random()
