"""Goodput: requests that met every limit of their SLO class / seconds of serving, for one arm's rows."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.serving_seconds import serving_seconds
from quantgate.metrics.slo_attainment import SloLimits, slo_attainment


def goodput_rps(requests: pa.Table, limits: SloLimits) -> float | None:
    """Requests per second; None where nothing was served."""
    seconds = serving_seconds(requests)
    return float(slo_attainment(requests, limits).sum()) / seconds if seconds > 0 else None
