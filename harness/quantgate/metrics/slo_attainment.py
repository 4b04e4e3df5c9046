"""SLO attainment: 1 where a request was answered within every limit of its SLO class, else 0.

Failed, aborted and rejected requests, and those that finished without a token, count as not met: they stand in the
denominator. A limit on a metric that an answer does not have (TPOT of a single token) is met; a class without limits
asks only for an answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import is_equal
from quantgate.metrics.definition import FloatArray
from quantgate.metrics.endless_times import unanswered
from quantgate.metrics.registry import request_metric

SloLimits = Mapping[str, Mapping[str, float]]
"""SLO class -> request metric -> highest allowed value in its unit, as in `{"interactive": {"ttft_ms": 500}}`."""


def slo_attainment(requests: pa.Table, limits: SloLimits) -> FloatArray:
    """1.0 or 0.0 per row of the request table."""
    met = is_equal(requests, "status", "finished") & ~unanswered(requests)
    for slo_class, class_limits in limits.items():
        in_class = is_equal(requests, "slo_class", slo_class)
        for name, limit in class_limits.items():
            met &= ~(in_class & (request_metric(name)(requests) > limit))
    return met.astype(np.float64)
