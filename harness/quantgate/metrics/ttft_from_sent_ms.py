"""Time to first token without the driver's own lateness: arrival of the first token - sent."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import milliseconds_between
from quantgate.metrics.definition import FloatArray, RequestMetric


def _compute(requests: pa.Table) -> FloatArray:
    return milliseconds_between(requests, "sent_ns", "first_token_ns")


TTFT_FROM_SENT_MS = RequestMetric("ttft_from_sent_ms", "Time to first token, from sending", "ms", "lower", _compute)
