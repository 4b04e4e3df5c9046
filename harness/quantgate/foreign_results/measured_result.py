"""One result of a load test, whoever measured it: its times, its rates, and how each of them is defined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quantgate.stats.interval import Interval
from quantgate.stats.percentile import minimum_n, percentile, percentile_interval

Floats = NDArray[np.float64]

QUANTILES: dict[str, float] = {"p50": 0.50, "p95": 0.95, "p99": 0.99}

TIMES: dict[str, str] = {
    "ttft_ms": "TTFT from schedule",
    "ttft_from_sent_ms": "TTFT from sending",
    "tpot_ms": "TPOT",
    "itl_ms": "ITL",
    "e2e_from_sent_ms": "E2E from sending",
}
"""Every time that results are compared by, with its title; all of them in milliseconds."""

RATES: dict[str, tuple[str, str]] = {
    "requests_per_s": ("finished requests", "requests/s"),
    "output_tokens_per_s": ("output throughput", "tokens/s"),
    "goodput_rps": ("goodput", "requests/s"),
}
"""Every rate, with its title and unit."""


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile. interval: None where single values are not known; `carried`: whether n is enough for it."""

    value: float
    interval: Interval | None
    carried: bool


@dataclass(frozen=True, slots=True)
class TimeFigures:
    """One time over the requests of a result, ms. n: requests, or gaps where the gaps of all requests are pooled.

    definition: the formula by which this tool measures it. unanswered: those of the n that are infinitely
    slow: percentiles count them, the mean is that of the others.
    """

    definition: str
    n: int | None
    mean: float | None
    percentiles: Mapping[str, Percentile]
    unanswered: int = 0

    @classmethod
    def from_values(cls, values: Floats, definition: str, *, independent: bool = True) -> TimeFigures | None:
        """From single values [n], NaN where undefined, infinite where unanswered; None where none is finite.

        A percentile that n cannot carry is left out. `independent`: one value a request; pooled gaps are not, so that
        no interval of order statistics holds for them.
        """
        usable = values[~np.isnan(values)]
        finite = usable[np.isfinite(usable)]
        if not len(finite):
            return None
        carried = {name: quantile for name, quantile in QUANTILES.items() if len(usable) >= minimum_n(quantile)}
        return cls(
            definition,
            len(usable),
            float(finite.mean()),
            {
                name: Percentile(
                    percentile(usable, quantile),
                    percentile_interval(usable, quantile) if independent else None,
                    carried=True,
                )
                for name, quantile in carried.items()
            },
            unanswered=len(usable) - len(finite),
        )

    @classmethod
    def from_summary(
        cls, definition: str, *, n: int | None, mean: float | None, percentiles: Mapping[str, float | None]
    ) -> TimeFigures | None:
        """From a tool's own statistics; None where it gives none. Percentiles that n cannot carry are kept, marked."""
        known = {name: value for name, value in percentiles.items() if value is not None and name in QUANTILES}
        if mean is None and not known:
            return None
        return cls(
            definition,
            n,
            mean,
            {
                name: Percentile(value, None, carried=n is None or n >= minimum_n(QUANTILES[name]))
                for name, value in known.items()
            },
        )


@dataclass(frozen=True, slots=True)
class RateFigure:
    """One rate in the unit of `RATES`, with its formula."""

    definition: str
    value: float


@dataclass(frozen=True, slots=True)
class MeasuredResult:
    """One column of a comparison: an arm of a stored run, or one load test of another tool.

    label: what the column is called. seconds: how long requests were served. Keys of `times` are those of `TIMES`,
    keys of `rates` those of `RATES`; what the tool does not tell is absent.
    """

    label: str
    tool: str
    source: str
    model: str | None
    finished: int | None
    failed: int | None
    seconds: float | None
    times: Mapping[str, TimeFigures]
    rates: Mapping[str, RateFigure]
    notes: tuple[str, ...] = field(default=())


def present(figures: Mapping[str, TimeFigures | None]) -> dict[str, TimeFigures]:
    """The times that could be told."""
    return {name: figure for name, figure in figures.items() if figure is not None}


def rates_of(definitions: Mapping[str, str], values: Mapping[str, float | None]) -> dict[str, RateFigure]:
    """The rates that could be told, each with its formula."""
    return {name: RateFigure(definitions[name], value) for name, value in values.items() if value is not None}
