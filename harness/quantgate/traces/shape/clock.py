"""Whether a trace's clock ticks: times at a coarse step, as BurstGPT's (1 s) and Mooncake's (about 3 s) have it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quantgate.traces.shape.batch import Integers

_COARSE_NS = 1_000_000
"""Finer steps are those of a clock that writes milliseconds, and move no figure."""

_FEWEST_GAPS = 10
"""Of random times in ms, ten gaps have a common factor in 0.1 % of the cases (1 - 1 / zeta(10)), three in 17 %."""

_ROWS_PER_TICK = 1.1
"""Of uneven ticks. Requests at a regular pace look like such ticks; they share no times, though."""

_LARGEST_JITTER = 0.02
"""Of the step."""

_COMPARED_STEPS = 20
"""Longer gaps are silences: of how many steps they are is no longer sure."""

_MOST_GAP_VALUES = 1 << 17
_NS_PER_MICROSECOND = 1000


@dataclass(frozen=True, slots=True)
class ClockTicks:
    """step_s: the largest step of which all times are multiples; the mean one where ticks come unevenly.

    jitter_s: the furthest that the time between two ticks lies from a multiple of the step; 0 for an exact clock.
    ticks: distinct times.
    """

    step_s: float
    jitter_s: float
    ticks: int
    rows_per_tick: float
    most_rows_per_tick: int


class ClockWatch:
    """Sees every gap between two distinct times; remembers how often each occurs while none is below a millisecond."""

    def __init__(self) -> None:
        self._rows = 0
        self._ticks = 0
        self._most_rows = 0
        self._common_ns = 0
        self._gaps_us: Counter[int] | None = Counter()
        self._last_ns = -1
        self._rows_at_last = 0

    def add(self, times_ns: Integers) -> None:
        """Times in order, none before those that were added earlier."""
        starts = np.flatnonzero(np.diff(times_ns, prepend=self._last_ns))
        ends = np.append(starts[1:], len(times_ns))
        self._rows += len(times_ns)
        self._rows_at_last += int(starts[0]) if len(starts) else len(times_ns)
        self._most_rows = max(self._most_rows, self._rows_at_last)
        if not len(starts):
            return
        distinct = times_ns[starts]
        if self._ticks:
            self._see(np.diff(distinct, prepend=self._last_ns))
        else:
            self._see(np.diff(distinct))
        self._ticks += len(distinct)
        self._most_rows = max(self._most_rows, int((ends - starts).max()))
        self._last_ns, self._rows_at_last = int(distinct[-1]), int(ends[-1] - starts[-1])

    def _see(self, gaps_ns: Integers) -> None:
        if not len(gaps_ns):
            return
        if not 0 < self._common_ns <= _COARSE_NS:
            self._common_ns = int(np.gcd(self._common_ns, np.gcd.reduce(gaps_ns)))
        if self._gaps_us is None:
            return
        if int(gaps_ns.min()) <= _COARSE_NS:
            self._gaps_us = None
            return
        values, counts = np.unique((gaps_ns + _NS_PER_MICROSECOND // 2) // _NS_PER_MICROSECOND, return_counts=True)
        self._gaps_us.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        if len(self._gaps_us) > _MOST_GAP_VALUES:
            self._gaps_us = None

    def ticks(self) -> ClockTicks | None:
        """None where nothing shows that the clock ticks: no common step, or too few distinct times to tell."""
        if self._ticks <= _FEWEST_GAPS:
            return None
        exact_s = self._common_ns / 1e9 if self._common_ns > _COARSE_NS else None
        step_s, jitter_s = self._uneven_step() or (exact_s, 0.0)
        if step_s is None:
            return None
        if exact_s is not None and step_s < 1.5 * exact_s:
            step_s, jitter_s = exact_s, 0.0
        return ClockTicks(step_s, jitter_s, self._ticks, self._rows / self._ticks, self._most_rows)

    def _uneven_step(self) -> tuple[float, float] | None:
        """Step and jitter, in seconds, of ticks that are not quite even."""
        if self._gaps_us is None or self._rows < _ROWS_PER_TICK * self._ticks:
            return None
        values = np.array(sorted(self._gaps_us), dtype=np.float64)
        counts = np.array([self._gaps_us[int(value)] for value in values], dtype=np.float64)
        step = _mean(values, counts, values < 1.5 * values[0])
        # The mean over single steps may be a little off, which matters for gaps of many.
        for _ in range(3):
            multiples = np.maximum(1, np.rint(values / step))
            compared = multiples <= _COMPARED_STEPS
            step = _mean(values, counts, compared, multiples)
        jitter = float(np.abs(values - multiples * step)[compared].max())
        return (step / 1e6, jitter / 1e6) if jitter <= _LARGEST_JITTER * step else None


def _mean(
    values: NDArray[np.float64],
    counts: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    multiples: NDArray[np.float64] | None = None,
) -> float:
    steps = counts if multiples is None else counts * multiples
    return float((values * counts)[chosen].sum() / steps[chosen].sum())
