"""Tail waste: the share of allocated KV slots that hold no token (the complement of KV utilization)."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.definition import StepMetric
from quantgate.metrics.kv_utilization import KV_UTILIZATION


def _compute(steps: pa.Table) -> float | None:
    utilization = KV_UTILIZATION(steps)
    return None if utilization is None else 1.0 - utilization


TAIL_WASTE = StepMetric("tail_waste", "Tail waste", "ratio", "lower", _compute)
