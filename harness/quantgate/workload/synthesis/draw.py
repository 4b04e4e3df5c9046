"""New traffic of a fitted kind: when units start, and which recorded units they repeat."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, count

from quantgate.traces.native_row import LONGEST_SECONDS, NANOSECONDS_PER_SECOND
from quantgate.traces.record import TraceRecord
from quantgate.workload.portable_draws import PortableDraws
from quantgate.workload.synthesis.fit import TrafficFit, Unit
from quantgate_engine.errors import ConfigurationError

MOST_REQUESTS = 10_000_000

# Gaps of a smaller variation are all alike; their gamma shape would overflow.
_EVEN_CV = 1e-3


def draw_traffic(fit: TrafficFit, *, duration_s: float, rate_rps: float, seed: int) -> list[TraceRecord]:
    """Records in order of time, of a trace whose units start within so many seconds.

    The fitted windows are stretched to the duration and their rates scaled, so that `rate_rps` requests a second are
    expected on average. Each unit repeats one that was recorded in its window. Raises ConfigurationError where too many
    requests are asked for, or none was drawn.
    """
    if not rate_rps * duration_s <= MOST_REQUESTS or duration_s > LONGEST_SECONDS:
        raise ConfigurationError(
            f"{rate_rps:g} requests/s for {duration_s:g} s were asked for; expected {MOST_REQUESTS:,} requests and "
            f"{LONGEST_SECONDS:,} s at most."
        )
    draws = PortableDraws(f"synth:{seed}")
    fresh = _FreshNames(fit)
    drawn: list[TraceRecord] = []
    for start_s, window in _starts(fit, duration_s, rate_rps, draws):
        units = fit.windows[window].units
        drawn.extend(fresh.repeat(units[draws.below(len(units))], round(start_s * NANOSECONDS_PER_SECOND)))
    if not drawn:
        raise ConfigurationError(
            f"No request came in {duration_s:g} s at {rate_rps:g} requests/s; ask for a longer trace or a higher rate."
        )
    # Stable: turns of a session at one moment stay in their order.
    drawn.sort(key=lambda record: record.scheduled_ns)
    return [replace(record, request_id=f"r{number}") for number, record in enumerate(drawn, 1)]


def _starts(fit: TrafficFit, duration_s: float, rate_rps: float, draws: PortableDraws) -> Iterator[tuple[float, int]]:
    """When units start, and in which window: a renewal process of mean gap 1, in time that runs as fast as the rate.

    A gap has the burstiness of the window it begins in. The first one is what is left of a gap at a moment chosen at
    random, so that the rate is right from the start (the equilibrium process: Cox, Renewal Theory, 1962, section 2.1).
    """
    stretch = duration_s / fit.duration_s
    scale = rate_rps / fit.rate_rps
    # How many units are expected before each window's end.
    ends = list(accumulate(window.rate * window.length_s * stretch * scale for window in fit.windows))
    passed = draws.uniform() * _gap(draws, fit.windows[0].gap_cv, length_biased=True)
    # The first window whose end lies beyond: windows without arrivals end where they begin, and are passed over.
    while (number := bisect_right(ends, passed)) < len(ends):
        window = fit.windows[number]
        inside = passed - (ends[number - 1] if number else 0.0)
        yield window.start_s * stretch + inside / (window.rate * scale), number
        passed += _gap(draws, window.gap_cv)


def _gap(draws: PortableDraws, gap_cv: float, *, length_biased: bool = False) -> float:
    """Gamma, of mean 1; or that of the gap which a random moment falls into, whose shape is greater by 1."""
    if gap_cv < _EVEN_CV:
        return 1.0
    shape = 1.0 / (gap_cv * gap_cv)
    return draws.gamma(shape + 1.0 if length_biased else shape) / shape


class _FreshNames:
    """Repeats recorded units under new names.

    Blocks that units have in common keep their ids. Those that only one unit has are new each time: two draws of one
    request are two requests that are alike, not one prompt sent twice.
    """

    def __init__(self, fit: TrafficFit) -> None:
        holders = Counter(block for window in fit.windows for unit in window.units for block in _blocks(unit))
        self._common = {block for block, units in holders.items() if units > 1}
        self._ids = count(max(holders, default=0) + 1)
        self._sessions = count(1)

    def repeat(self, unit: Unit, start_ns: int) -> Iterator[TraceRecord]:
        first_ns = unit[0].scheduled_ns
        session = None if unit[0].session_id is None else f"s{next(self._sessions)}"
        renamed = {block: next(self._ids) for block in sorted(_blocks(unit) - self._common)}
        for record in unit:
            blocks = record.prompt_blocks
            yield replace(
                record,
                scheduled_ns=start_ns + record.scheduled_ns - first_ns,
                session_id=session,
                prompt_blocks=None
                if blocks is None
                else replace(blocks, ids=tuple(renamed.get(block, block) for block in blocks.ids)),
            )


def _blocks(unit: Unit) -> set[int]:
    return {block for record in unit if record.prompt_blocks is not None for block in record.prompt_blocks.ids}
