"""Who holds blocks of the KV cache, how many and for how long, and who of them is a finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from quantgate_engine.counted import counted
from quantgate_engine.setting_checks import require, require_number, require_seconds

HolderKind = Literal["request", "session", "swapped"]


@dataclass(frozen=True, slots=True)
class KVHolding:
    """One holder: a running request, a session between two turns, or a request that was swapped out to the host.

    block_seconds: blocks x seconds since it began to hold any. A session has held for as long as there were turns
    without a pause above its lifetime.
    """

    holder: str
    kind: HolderKind
    blocks: int
    held_seconds: float
    block_seconds: float


@dataclass(frozen=True, slots=True)
class HoldingLimits:
    """From where on a holder is a finding.

    times_median: it holds more than so many times the blocks of the median holder. held_seconds: it has held blocks
    for longer than that.
    """

    times_median: float = 8.0
    held_seconds: float = 600.0

    def __post_init__(self) -> None:
        require_number("HoldingLimits.times_median", self.times_median)
        require(self.times_median > 1, "HoldingLimits.times_median", self.times_median, "above 1")
        require_seconds("HoldingLimits.held_seconds", self.held_seconds)


@dataclass(frozen=True, slots=True)
class LongHolder:
    """A holder above a limit; `reasons` say in half a sentence each which one, with the numbers."""

    holding: KVHolding
    reasons: tuple[str, ...]


def long_holders(holdings: Iterable[KVHolding], limits: HoldingLimits) -> list[LongHolder]:
    """Those of `holdings` that are above a limit, in their order."""
    listed = list(holdings)
    usual = median(holding.blocks for holding in listed) if listed else 0.0
    found: list[LongHolder] = []
    for holding in listed:
        reasons: list[str] = []
        if holding.blocks > limits.times_median * usual:
            reasons.append(f"holds {counted(holding.blocks, 'block')}, and the median holder {usual:g}")
        if holding.held_seconds > limits.held_seconds:
            reasons.append(
                f"has held blocks for {holding.held_seconds:.3g} s, and the limit is {limits.held_seconds:g} s"
            )
        if reasons:
            found.append(LongHolder(holding, tuple(reasons)))
    return found
