"""Failure: 1 where a request failed or was rejected, 0 where it finished; NaN where the client itself cut it short.

A disconnect that the trace asks for, after tokens or after seconds, is no failure of the arm; an abort for any other
cause is one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import is_equal
from quantgate.metrics.definition import FloatArray, RequestMetric


def _compute(requests: pa.Table) -> FloatArray:
    finished = is_equal(requests, "status", "finished")
    by_plan = is_equal(requests, "abort_cause", "disconnect") | is_equal(requests, "abort_cause", "impatience")
    left = is_equal(requests, "status", "aborted") & by_plan
    return np.where(left, np.nan, np.where(finished, 0.0, 1.0))


FAILED = RequestMetric("failed", "Failed or rejected", "share", "lower", _compute)
