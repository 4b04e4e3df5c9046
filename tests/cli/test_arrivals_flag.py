"""`--arrivals` says a process and its settings in one word."""

from __future__ import annotations

import pytest

from quantgate.cli.arrivals_flag import arrivals_from_flag
from quantgate.cli.traffic_flags import TrafficFlags
from quantgate.workload.transforms import Arrivals, Limit, Speed


@pytest.mark.parametrize(
    ("text", "arrivals"),
    [
        ("constant:2", Arrivals(process="constant", rate=2)),
        ("poisson:2.5", Arrivals(process="poisson", rate=2.5)),
        ("gamma:2.5:3", Arrivals(process="gamma", rate=2.5, cv=3)),
        ("ramp:1:5e-1", Arrivals(process="ramp", rate=1, to_rate=0.5)),
    ],
)
def test_every_process(text: str, arrivals: Arrivals) -> None:
    assert arrivals_from_flag(text) == arrivals


def test_the_rate_is_as_asked_whatever_part_and_speed_of_the_trace_is_taken() -> None:
    flags = TrafficFlags(arrivals="poisson:2", speed=4.0, limit=10)
    assert flags.transforms() == (Limit(requests=10), Speed(factor=4), Arrivals(process="poisson", rate=2))
