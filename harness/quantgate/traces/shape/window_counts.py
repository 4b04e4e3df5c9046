"""How requests bunch: their counts in windows of one width, laid side by side from the first arrival."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quantgate.traces.shape.batch import Integers

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class CountSpread:
    """Counts of requests in windows of `window_s` seconds, the last of which the trace may end inside.

    variance_to_mean: 1 for a Poisson process, whatever the width; more where requests come in bursts or the rate moves;
    None for a single window, which varies from nothing.
    """

    window_s: int
    windows: int
    variance_to_mean: float | None
    peak_to_mean: float


class WindowCounts:
    """Needs no count per window: windows come one after another, and only the last one is still open."""

    def __init__(self, window_s: int) -> None:
        self._window_s = window_s
        self._first_ns: int | None = None
        self._rows = 0
        self._squares = 0
        self._largest = 0
        self._open_window = 0
        self._open_count = 0

    def add(self, times_ns: Integers) -> None:
        """Times in order, none before those that were added earlier."""
        if self._first_ns is None:
            self._first_ns = int(times_ns[0])
        windows = (times_ns - self._first_ns) // (self._window_s * _NANOSECONDS)
        starts = np.flatnonzero(np.diff(windows, prepend=-1))
        counts = np.diff(starts, append=len(windows))
        self._rows += len(windows)
        if int(windows[0]) == self._open_window:
            counts[0] += self._open_count
        else:
            self._close(self._open_count)
        for_good = counts[:-1]
        self._squares += int(np.dot(for_good, for_good))
        self._largest = max(self._largest, int(for_good.max(initial=0)))
        self._open_window, self._open_count = int(windows[-1]), int(counts[-1])

    def _close(self, count: int) -> None:
        self._squares += count * count
        self._largest = max(self._largest, count)

    def spread(self) -> CountSpread:
        windows = self._open_window + 1
        mean = self._rows / windows
        squares = self._squares + self._open_count**2
        return CountSpread(
            window_s=self._window_s,
            windows=windows,
            # (E[n^2] - E[n]^2) / E[n], as one quotient of integers.
            variance_to_mean=(windows * squares - self._rows**2) / (windows * self._rows) if windows > 1 else None,
            peak_to_mean=max(self._largest, self._open_count) / mean,
        )
