"""End to end: arrival of the last token at the driver - scheduled, for finished requests.

None where its client reads slowly by plan: most of that time would be the client's own. Infinite where the client left
because its time was over: it never saw the end.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.definition import FloatArray, RequestMetric
from quantgate.metrics.finished_only import milliseconds_of_finished
from quantgate.metrics.gave_up import gave_up
from quantgate.metrics.slow_readers import at_the_arms_pace


def _compute(requests: pa.Table) -> FloatArray:
    times = at_the_arms_pace(milliseconds_of_finished(requests, "scheduled_ns", "last_token_ns"), requests)
    return np.where(gave_up(requests), np.inf, times)


E2E_MS = RequestMetric("e2e_ms", "End-to-end latency", "ms", "lower", _compute)
