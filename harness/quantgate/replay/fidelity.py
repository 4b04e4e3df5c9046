"""Did the driver deliver the load that the plan asked for? A run that did not gets no verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quantgate.metrics.columns import NS_PER_MS, NS_PER_S, floats
from quantgate.metrics.definition import FloatArray
from quantgate.replay.closed_loop import OPEN_LOOP
from quantgate.replay.replay_log import CellResult
from quantgate.store.manifest import FidelityCertificate, FidelityWindow, PrefixSharing, RowsTouched
from quantgate.traces.transform_record import TransformRecord
from quantgate_engine.counted import counted, plural

WINDOWS_SECONDS = (1, 10, 60)
DEFAULT_LAG_LIMIT_MS = 50.0


def certify(
    arm_id: str,
    cells: Sequence[CellResult],
    *,
    requests_intended: int,
    lag_limit_ms: float = DEFAULT_LAG_LIMIT_MS,
    load: str = OPEN_LOOP,
    sharing: PrefixSharing | None = None,
    transforms: Sequence[TransformRecord] = (),
) -> FidelityCertificate:
    """The certificate of one arm from its cells; `requests_intended` counts the plan's requests over all passes.

    lag = sent - scheduled, from the absolute schedule: a delay that hits every request alike shows in full (a lag taken
    from the least late request would hide it). Later turns of a session are intended when their rule says: the previous
    answer and the think time. Those of a closed loop are intended when their client is free; `load` says which of both
    loads it was. Window counts lie on the plan's own time line, because the arm's cells are scattered over the run.
    `sharing`, and `transforms`, what was done to the recorded rows, are stated and decide nothing.
    """
    lags_ms = _join([_lag_ms(result) for result in cells])
    delivered = len(lags_ms)
    quantiles = np.quantile(lags_ms, [0.50, 0.95, 0.99, 1.0]).tolist() if delivered else [0.0] * 4
    reasons = []
    if delivered != requests_intended:
        reasons.append(
            f"{delivered} of {counted(requests_intended, 'intended request')} {plural(delivered, 'was', 'were')} sent."
        )
    if quantiles[2] > lag_limit_ms:
        reasons.append(
            f"1 % of the requests were sent more than {quantiles[2]:.1f} ms after their schedule; "
            f"the limit is {lag_limit_ms:g} ms."
        )
    intended_s, delivered_s = (
        _join([_plan_seconds(r, "scheduled_ns") for r in cells]),
        _join([_plan_seconds(r, "sent_ns") for r in cells]),
    )
    return FidelityCertificate(
        arm_id=arm_id,
        load=load,
        requests_intended=requests_intended,
        requests_delivered=delivered,
        lag_ms_p50=quantiles[0],
        lag_ms_p95=quantiles[1],
        lag_ms_p99=quantiles[2],
        lag_ms_max=quantiles[3],
        windows=[_window(seconds, intended_s, delivered_s) for seconds in WINDOWS_SECONDS],
        driver_cpu_share=_driver_cpu_share(cells),
        valid=not reasons,
        reasons=reasons,
        prefix_sharing=sharing,
        rows_touched=[
            RowsTouched(name=step.name, rows_in=step.rows_in, rows_out=step.rows_out, rows_touched=step.rows_touched)
            for step in transforms
        ],
    )


def _lag_ms(result: CellResult) -> FloatArray:
    return (floats(result.requests, "sent_ns") - floats(result.requests, "scheduled_ns")) / NS_PER_MS


def _plan_seconds(result: CellResult, column: str) -> FloatArray:
    return (floats(result.requests, column) - result.anchor_ns + result.plan_start_ns) / NS_PER_S


def _join(arrays: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([np.empty(0), *arrays])


def _window(seconds: int, intended_s: FloatArray, delivered_s: FloatArray) -> FidelityWindow:
    """Requests per window of that many seconds, summed over passes, from the plan's start."""
    last = max(intended_s.max(initial=0.0), delivered_s.max(initial=0.0))
    count = int(last // seconds) + 1 if len(intended_s) else 0
    intended, delivered = _count(intended_s, seconds, count), _count(delivered_s, seconds, count)
    return FidelityWindow(
        window_seconds=seconds,
        intended=intended.tolist(),
        delivered=delivered.tolist(),
        max_difference=int(np.abs(intended - delivered).max(initial=0)),
    )


def _count(times_s: FloatArray, seconds: int, windows: int) -> NDArray[np.int64]:
    return np.bincount((times_s // seconds).astype(np.int64), minlength=windows).astype(np.int64)


def _driver_cpu_share(cells: Sequence[CellResult]) -> float | None:
    """CPU time of the driver's thread / duration of the cells; near 1 the driver itself is the bottleneck."""
    cpu_ns = [result.driver_cpu_ns for result in cells if result.driver_cpu_ns is not None]
    wall_ns = sum(result.wall_ns for result in cells)
    return sum(cpu_ns) / wall_ns if len(cpu_ns) == len(cells) and wall_ns > 0 else None
