"""Time to the first token of the answer itself, after any reasoning: its arrival at the driver - scheduled.

The same as TTFT for a model that does not reason aloud, or whose server does not tell reasoning from answer. A request
that finished with reasoning alone, or with nothing, never answered: its time is infinite. A client that reads slowly by
plan comes to the answer at its own pace: it has no such time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import is_equal, milliseconds_between
from quantgate.metrics.definition import FloatArray, RequestMetric
from quantgate.metrics.slow_readers import at_the_arms_pace


def _compute(requests: pa.Table) -> FloatArray:
    times = milliseconds_between(requests, "scheduled_ns", "first_answer_ns")
    never = is_equal(requests, "status", "finished") & np.isnan(times)
    return np.where(never, np.inf, at_the_arms_pace(times, requests))


TIME_TO_FIRST_ANSWER_MS = RequestMetric(
    "time_to_first_answer_ms", "Time to first answer token", "ms", "lower", _compute
)
