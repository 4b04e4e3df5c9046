"""SLO limits proposed from a measured baseline: the upper confidence limit of its slow end, with headroom."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.gate.policy import SloClass
from quantgate.metrics.columns import is_equal
from quantgate.metrics.endless_times import times_or_endless
from quantgate.stats.percentile import minimum_n, percentile, percentile_interval
from quantgate_engine.counted import counted, plural

_SLOWEST_FIRST: tuple[tuple[str, float], ...] = (("p99", 0.99), ("p95", 0.95))
"""A limit should stand at the slow end of what is normal, so that p99 is taken where n carries it."""

_REPEATS = {"time_to_first_answer_ms": "ttft_ms"}
"""A metric that says the same as another unless the model reasons aloud; it gets no limit of its own then."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A limit in milliseconds, and what it came from: a percentile of n requests and its upper confidence limit."""

    limit: float
    percentile: str
    value: float
    upper: float
    n: int


@dataclass(frozen=True, slots=True)
class NoProposal:
    """Why a metric gets no limit, and where more requests would help, how many are needed."""

    reason: str
    n: int
    needed: int | None = None


ClassProposals = Mapping[str, Proposal | NoProposal]
"""SLO metric -> what is proposed for it."""


def propose_slos(requests: pa.Table, *, headroom: float, confidence: float = 0.95) -> dict[str, ClassProposals]:
    """SLO class -> proposals, for the rows of one arm; every class of the rows, every metric that an SLO can limit.

    limit = upper confidence limit of p99 (of p95 where n carries no p99) x headroom, rounded up to two digits. Requests
    that failed or gave no token count as infinitely slow, as in the rules.
    """
    return {
        name: _of_class(requests.filter(pa.array(is_equal(requests, "slo_class", name))), headroom, confidence)
        for name in slo_classes(requests)
    }


def slo_classes(requests: pa.Table) -> list[str]:
    """The classes that the rows are of."""
    return sorted({str(name) for name in requests.column("slo_class").to_pylist()})


def has_limit(proposals: Mapping[str, ClassProposals]) -> bool:
    """Whether any limit at all could be proposed."""
    return any(isinstance(found, Proposal) for own in proposals.values() for found in own.values())


def round_up(milliseconds: float) -> float:
    """The next number with two significant digits: 1,234 becomes 1,300, 8.31 becomes 8.4."""
    step = 10.0 ** (math.floor(math.log10(milliseconds)) - 1)
    # The small step back keeps a number that has two digits already from being rounded up by its own rounding error.
    rounded = math.ceil(milliseconds / step - 1e-9) * step
    return round(rounded, max(0, -math.floor(math.log10(step))))


def _of_class(requests: pa.Table, headroom: float, confidence: float) -> ClassProposals:
    times = {metric: times_or_endless(metric, requests) for metric in SloClass.model_fields}
    repeated = {
        metric for metric, other in _REPEATS.items() if np.array_equal(times[metric], times[other], equal_nan=True)
    }
    return {metric: _propose(own, headroom, confidence) for metric, own in times.items() if metric not in repeated}


def _propose(times: NDArray[np.float64], headroom: float, confidence: float) -> Proposal | NoProposal:
    """times: [requests], infinite for a request that never came to it, NaN where the metric is undefined."""
    usable = times[~np.isnan(times)]
    n, endless = len(usable), int(np.isinf(usable).sum())
    reason = None
    for name, quantile in _SLOWEST_FIRST:
        interval = percentile_interval(usable, quantile, confidence)
        if interval is None:
            continue
        if interval.upper <= 0:
            reason = f"{name} was 0 ms"
        elif not math.isfinite(interval.upper):
            reason = f"{endless} of {counted(n, 'request')} failed or never came to it, {name} has no upper end"
        else:
            return Proposal(round_up(interval.upper * headroom), name, percentile(usable, quantile), interval.upper, n)
    if reason is not None:
        return NoProposal(reason, n)
    name, quantile = _SLOWEST_FIRST[-1]
    needed = minimum_n(quantile, confidence)
    return NoProposal(
        f"{counted(n, 'request')} {plural(n, 'carries', 'carry')} no {name}, {needed} are needed", n, needed
    )
