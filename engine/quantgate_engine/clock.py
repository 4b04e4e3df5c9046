"""Where time comes from. Nothing else in the project reads a clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ns(self) -> int:
        """Nanoseconds from an arbitrary fixed origin; never goes back."""
        ...


class MonotonicClock:
    """The machine's monotonic clock."""

    def now_ns(self) -> int:
        return time.monotonic_ns()


class VirtualClock:
    """A clock that moves only when told to: simulation and tests."""

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns

    def now_ns(self) -> int:
        return self._now_ns

    def advance_ns(self, duration_ns: int) -> None:
        if duration_ns < 0:
            raise ValueError(f"a clock cannot go back ({duration_ns} ns)")
        self._now_ns += duration_ns
