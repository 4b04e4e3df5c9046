"""The processes by which traffic may arrive: when each of a number of units starts, in seconds from the replay's start.

None is bent to a total: the last arrival of a Poisson process falls where its gaps put it, and the count in a window
varies as the process says. A schedule that is stretched so that N units end at N / rate has lost that variance, and
with it part of the queueing that it was to cause. The first gap is drawn like the others. Under one seed a longer
trace only adds arrivals at the end, and another rate only scales the same ones (except on a ramp, whose slope goes by
the number of units).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from quantgate.workload.portable_draws import PortableDraws

ProcessName = Literal["constant", "poisson", "gamma", "ramp"]


@dataclass(frozen=True, slots=True)
class ArrivalProcess:
    """own_settings: what the process has besides its rate. starts: (units, draws, rate, own settings) -> seconds.

    gap_cv: the coefficient of variation of its gaps where no setting tells it; None where the gaps are not alike.
    """

    own_settings: tuple[str, ...]
    gap_cv: float | None
    starts: Callable[..., list[float]]


def _constant(units: int, draws: PortableDraws, *, rate: float) -> list[float]:
    del draws
    return [number / rate for number in range(1, units + 1)]


def _poisson(units: int, draws: PortableDraws, *, rate: float) -> list[float]:
    return [start / rate for start in _unit_rate_starts(units, draws)]


def _gamma(units: int, draws: PortableDraws, *, rate: float, cv: float) -> list[float]:
    """Independent gaps of the gamma distribution: of shape 1 / cv^2, so that their standard deviation is cv / rate."""
    shape = 1.0 / (cv * cv)
    return [start / (shape * rate) for start in accumulate(draws.gamma(shape) for _ in range(units))]


def _ramp(units: int, draws: PortableDraws, *, rate: float, to_rate: float) -> list[float]:
    """A Poisson process whose rate r(t) runs in a straight line from `rate` to `to_rate`.

    The line ends at T = 2 units / (rate + to_rate), when the cumulative rate L(t) has reached the number of units, so
    that as many are expected by then. Arrivals are the t with L(t) = s, for the arrivals s of a process of rate 1
    (the mapping theorem: Kingman, Poisson Processes, 1993, section 2.3). Over the ramp r(t)^2 is a straight line in s,
    from rate^2 to to_rate^2, and t is s over the mean of `rate` and r(t); what is left after T comes at `to_rate`.
    """
    end = 2.0 * units / (rate + to_rate)
    slope = (to_rate - rate) * (to_rate + rate) / units
    # Where a steep fall ends, the subtraction below leaves less than its own rounding error.
    least = min(rate, to_rate) * min(rate, to_rate)

    def inverse(s: float) -> float:
        if s >= units:
            return end + (s - units) / to_rate
        return 2.0 * s / (rate + math.sqrt(max(rate * rate + slope * s, least)))

    return [inverse(s) for s in _unit_rate_starts(units, draws)]


def _unit_rate_starts(units: int, draws: PortableDraws) -> list[float]:
    return list(accumulate(draws.exponential() for _ in range(units)))


PROCESSES: Mapping[ProcessName, ArrivalProcess] = {
    "constant": ArrivalProcess((), 0.0, _constant),
    "poisson": ArrivalProcess((), 1.0, _poisson),
    "gamma": ArrivalProcess(("cv",), None, _gamma),
    "ramp": ArrivalProcess(("to_rate",), None, _ramp),
}
