"""Queue time: admitted - arrived, both on the engine's clock."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import milliseconds_between
from quantgate.metrics.definition import FloatArray, RequestMetric


def _compute(requests: pa.Table) -> FloatArray:
    return milliseconds_between(requests, "arrived_ns", "admitted_ns")


QUEUE_TIME_MS = RequestMetric("queue_time_ms", "Queue time", "ms", "lower", _compute)
