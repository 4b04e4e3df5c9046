"""When requests arrive, in the shape of published traces.

Azure's conversation trace is locally Poisson with a rate that changes over minutes (inter-arrival CV 1.02 within a
minute, five-minute counts from 768 to 2,239); its code trace is on and off. Both hold for the samples in compressed
time: an hour of rate changes in `SPAN_S` seconds.
"""

from __future__ import annotations

from quantgate.workload.sample_drawing.seeded_draws import SeededDraws

SPAN_S = 42.0

# Relative rates of twelve equal stretches; highest over lowest is 2.9, as between the trace's five-minute counts.
RATE_BY_STRETCH = (0.62, 0.50, 0.66, 0.94, 1.18, 1.45, 1.32, 1.08, 1.24, 1.38, 0.96, 0.67)

BURST_SIZE_MEDIAN = 4.0
BURST_SIZE_SIGMA = 0.7
BURST_GAP_MEAN_S = 0.07


def poisson_arrivals(count: int, draws: SeededDraws, until_s: float = SPAN_S) -> list[float]:
    """`count` times in [0, until_s) of a Poisson process with the changing rate, given that so many came.

    Given their number, arrivals of a Poisson process are independent draws from its normalised rate (Lewis and
    Shedler, 1979); rejection from the highest rate draws them.
    """
    highest = max(RATE_BY_STRETCH)
    times: list[float] = []
    while len(times) < count:
        time = draws.uniform(0.0, until_s)
        if draws.uniform(0.0, highest) < RATE_BY_STRETCH[int(time / SPAN_S * len(RATE_BY_STRETCH))]:
            times.append(time)
    return sorted(times)


def on_off_arrivals(count: int, draws: SeededDraws, until_s: float = SPAN_S) -> list[float]:
    """`count` times in bursts: starts spread evenly at random, lognormal sizes, short exponential gaps inside."""
    times: list[float] = []
    while len(times) < count:
        time = draws.uniform(0.0, until_s)
        size = max(1, round(draws.lognormal(BURST_SIZE_MEDIAN, BURST_SIZE_SIGMA)))
        for _ in range(min(size, count - len(times))):
            times.append(min(time, until_s))
            time += draws.exponential(BURST_GAP_MEAN_S)
    return sorted(times)
