"""Time to first token: arrival of the first token at the driver - scheduled.

Counted from the schedule, so that a request that was sent late because the system was busy does not hide its wait
(the coordinated omission that MLPerf LoadGen avoids the same way, `loadgen.cc`: latency from `scheduled_time`).
"""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import milliseconds_between
from quantgate.metrics.definition import FloatArray, RequestMetric


def _compute(requests: pa.Table) -> FloatArray:
    return milliseconds_between(requests, "scheduled_ns", "first_token_ns")


TTFT_MS = RequestMetric("ttft_ms", "Time to first token", "ms", "lower", _compute)
