"""What a recorded trace tells of its traffic: how its rate goes, how bursty it is, and which requests came when.

What arrives is a unit: a session with all its turns, or a single request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from quantgate.traces.native_row import NANOSECONDS_PER_SECOND
from quantgate.traces.record import TraceRecord
from quantgate.traces.traffic_shape import known_prompt_tokens
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

SCHEMA = "quantgate.trace-fit/1"

FEWEST_GAPS = 20
"""Below so many gaps a window's own burstiness is mostly chance, and that of the whole trace is taken."""

MOST_WINDOWS = 1_000_000

Unit = tuple[TraceRecord, ...]


@dataclass(frozen=True, slots=True)
class FittedWindow:
    """start_s: from the trace's first unit. rate: units that start per second. gap_cv: standard deviation over mean of
    the gaps between their starts. units: those that were recorded in it.
    """

    start_s: float
    length_s: float
    rate: float
    gap_cv: float
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class TrafficFit:
    """duration_s: the windows together, the time from the first start to the last and a mean gap more, so that the
    units over it are the rate. gap_cv: over all windows, each gap measured in mean gaps of its own window.
    """

    windows: tuple[FittedWindow, ...]
    duration_s: float
    rows: int
    units: int
    gap_cv: float

    @property
    def rate_rps(self) -> float:
        """Requests per second, all turns of sessions counted."""
        return self.rows / self.duration_s

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "rows": self.rows,
            "units": self.units,
            "duration_s": self.duration_s,
            "rate_rps": self.rate_rps,
            "gap_cv": self.gap_cv,
            "windows": [
                {
                    "start_s": window.start_s,
                    "length_s": window.length_s,
                    "starts_per_s": window.rate,
                    "gap_cv": window.gap_cv,
                    "units": len(window.units),
                }
                for window in self.windows
            ],
        }


def fit_traffic(
    records: Sequence[TraceRecord], window_s: float, count_prompt_tokens: Callable[[TraceRecord], int] | None = None
) -> TrafficFit:
    """Fits records in order of time by windows of so many seconds; texts leave only their lengths.

    Raises ConfigurationError for a trace whose units all start at one moment, for a prompt of unknown length, and for
    more windows than `MOST_WINDOWS`.
    """
    units = _units([_without_text(record, count_prompt_tokens) for record in records])
    starts = [(unit[0].scheduled_ns - units[0][0].scheduled_ns) / NANOSECONDS_PER_SECOND for unit in units]
    if starts[-1] == 0.0:
        raise ConfigurationError(
            "All sessions and requests of this trace start at one moment, so it tells no rate; expected two times."
        )
    duration_s = starts[-1] * len(units) / (len(units) - 1)
    # A rest below half a window would have a rate that is mostly chance: it joins the window before.
    count = max(1, math.floor(duration_s / window_s + 0.5))
    if count > MOST_WINDOWS:
        raise ConfigurationError(
            f"The trace has {count:,} windows of {window_s:g} s; expected {MOST_WINDOWS:,} at most: widen --window."
        )
    members: list[list[int]] = [[] for _ in range(count)]
    for number, start in enumerate(starts):
        members[min(int(start / window_s), count - 1)].append(number)
    lengths = [window_s] * (count - 1) + [duration_s - window_s * (count - 1)]
    gaps = [[starts[right] - starts[left] for left, right in pairwise(window)] for window in members]
    pooled = _variation([gap * len(window) / sum(window) for window in gaps if sum(window) for gap in window])
    overall = 1.0 if pooled is None else pooled
    own = [_variation(window) if len(window) >= FEWEST_GAPS else None for window in gaps]
    windows = tuple(
        FittedWindow(
            start_s=window_s * number,
            length_s=lengths[number],
            rate=len(window) / lengths[number],
            gap_cv=overall if (gap_cv := own[number]) is None else gap_cv,
            units=tuple(units[member] for member in window),
        )
        for number, window in enumerate(members)
    )
    return TrafficFit(windows, duration_s, len(records), len(units), overall)


def _without_text(record: TraceRecord, count: Callable[[TraceRecord], int] | None) -> TraceRecord:
    """The record as a length; what its words were for (checkers) goes with them."""
    tokens = known_prompt_tokens(record)
    if tokens is None and count is not None:
        tokens = count(record)
    if tokens is None:
        raise ConfigurationError(
            f"The trace does not tell how long the prompt of request {shown(record.request_id)} is; give the tokenizer "
            "that counts it (--tokenizer)."
        )
    return replace(
        record, messages=None, prompt_text=None, prompt_token_ids=None, prompt_token_count=tokens, checker=None
    )


def _units(records: Sequence[TraceRecord]) -> list[Unit]:
    """In order of their starts."""
    members: dict[tuple[str, str], list[TraceRecord]] = {}
    for record in records:
        key = ("request", record.request_id) if record.session_id is None else ("session", record.session_id)
        members.setdefault(key, []).append(record)
    return [tuple(unit) for unit in members.values()]


def _variation(gaps: Sequence[float]) -> float | None:
    """Standard deviation over mean; None below two gaps or where all are 0."""
    mean = sum(gaps) / len(gaps) if gaps else 0.0
    if len(gaps) < 2 or mean == 0.0:
        return None
    return math.sqrt(sum((gap - mean) * (gap - mean) for gap in gaps) / len(gaps)) / mean
