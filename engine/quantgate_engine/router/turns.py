"""Whose step is next on a device that several pools share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from quantgate_engine.router.pool import Pool
from quantgate_engine.router.settings import RouterSettings, TurnName


class TurnPolicy(Protocol):
    def next(self, ready: Sequence[Pool], /) -> Pool:
        """One of the pools that have work, which are given in their order."""
        ...

    def used(self, pool: Pool, duration_ns: int, /) -> None:
        """The pool has had the device for so long."""
        ...

    def rested(self) -> None:
        """No pool has work any more: what was before decides nothing when work comes again."""
        ...


class TimeShare:
    """Start-time fair queueing (Goyal, Vin and Cheng 1996), with steps for packets and pools for flows.

    A pool's tag is the time that it has used / its share, and the smallest tag goes next. A pool that comes back to
    work starts at the tag of the one that is served: it goes before those that have had more, and has saved up nothing.
    When all have come to rest, all start alike (in the paper: at the end of a busy period, at the greatest finish tag).
    """

    def __init__(self, _settings: RouterSettings) -> None:
        self._tags: dict[str, float] = {}
        self._served = 0.0

    def next(self, ready: Sequence[Pool]) -> Pool:
        for pool in ready:
            self._tags[pool.name] = max(self._tags.get(pool.name, 0.0), self._served)
        chosen = min(ready, key=lambda pool: self._tags[pool.name])
        self._served = self._tags[chosen.name]
        return chosen

    def used(self, pool: Pool, duration_ns: int) -> None:
        self._tags[pool.name] += duration_ns / pool.settings.share

    def rested(self) -> None:
        self._tags.clear()
        self._served = 0.0


class Priority:
    """The first pool that has work, until a later one has been passed over too often."""

    def __init__(self, settings: RouterSettings) -> None:
        self._max_passed = settings.max_passed_steps
        self._passed: dict[str, int] = {}

    def next(self, ready: Sequence[Pool]) -> Pool:
        passed = {pool.name: self._passed.get(pool.name, 0) for pool in ready}
        longest = max(ready, key=lambda pool: passed[pool.name])
        chosen = longest if passed[longest.name] >= self._max_passed else ready[0]
        self._passed = {name: count + 1 for name, count in passed.items() if name != chosen.name}
        return chosen

    def used(self, _pool: Pool, _duration_ns: int) -> None:
        return

    def rested(self) -> None:
        self._passed = {}


TURN_POLICIES: Mapping[TurnName, Callable[[RouterSettings], TurnPolicy]] = MappingProxyType(
    {"time-share": TimeShare, "priority": Priority}
)
