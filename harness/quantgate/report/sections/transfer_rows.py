"""Rows of the arms table about requests that crossed a network: what failed and how, what was sent again, stalls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from quantgate.metrics.columns import floats
from quantgate.metrics.registry import request_metric
from quantgate.metrics.stalls import stalls
from quantgate.report.numbers import NOTHING, count, milliseconds
from quantgate.report.run_view import ArmView, RunView
from quantgate_engine.counted import counted


def _failures(_view: RunView, arm: ArmView) -> str:
    return _tally(str(kind) for kind in arm.requests.column("error_kind").to_pylist() if kind is not None)


def _sent_again(_view: RunView, arm: ArmView) -> str:
    retries = floats(arm.requests, "attempts") - 1
    again = int(np.count_nonzero(retries > 0))
    return f"{counted(again, 'request')}, {counted(int(retries.sum()), 'time')}" if again else NOTHING


def _counted_by(_view: RunView, arm: ArmView) -> str:
    return _tally(str(way) for way in arm.requests.column("counted_by").to_pylist() if way != "engine")


def _client_overhead(_view: RunView, arm: ArmView) -> str:
    overhead = request_metric("client_overhead_ms")(arm.requests)
    return NOTHING if np.isnan(overhead).all() else f"{milliseconds(float(np.nanmax(overhead)))} at most"


def _stalls(view: RunView, arm: ArmView) -> str:
    counts = stalls(arm.requests, view.slo_limits)
    if np.isnan(counts).all():
        return NOTHING
    return f"{count(int(np.nansum(counts)))} in {counted(int(np.count_nonzero(counts > 0)), 'request')}"


def _tally(names: Iterable[str]) -> str:
    ordered = Counter(names).most_common()
    return ", ".join(f"{count(number)} {name}" for name, number in ordered) or NOTHING


TRANSFER_ROWS: dict[str, Callable[[RunView, ArmView], str]] = {
    "failures by kind": _failures,
    "sent again": _sent_again,
    "stalls": _stalls,
    "tokens counted by": _counted_by,
    "client overhead": _client_overhead,
}
"""Left out where no arm has anything to say."""
