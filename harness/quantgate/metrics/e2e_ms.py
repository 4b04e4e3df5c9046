"""End to end: arrival of the last token at the driver - scheduled, for finished requests."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.definition import FloatArray, RequestMetric
from quantgate.metrics.finished_only import milliseconds_of_finished


def _compute(requests: pa.Table) -> FloatArray:
    return milliseconds_of_finished(requests, "scheduled_ns", "last_token_ns")


E2E_MS = RequestMetric("e2e_ms", "End-to-end latency", "ms", "lower", _compute)
