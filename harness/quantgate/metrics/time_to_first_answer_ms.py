"""Time to the first token of the answer itself, after any reasoning: its arrival at the driver - scheduled.

The same as TTFT for a model that does not reason aloud, or whose server does not tell reasoning from answer. A request
that finished with reasoning alone, or with nothing, never answered: its time is infinite.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import is_equal, milliseconds_between
from quantgate.metrics.definition import FloatArray, RequestMetric


def _compute(requests: pa.Table) -> FloatArray:
    times = milliseconds_between(requests, "scheduled_ns", "first_answer_ns")
    return np.where(is_equal(requests, "status", "finished") & np.isnan(times), np.inf, times)


TIME_TO_FIRST_ANSWER_MS = RequestMetric(
    "time_to_first_answer_ms", "Time to first answer token", "ms", "lower", _compute
)
