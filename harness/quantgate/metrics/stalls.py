"""Stalls: gaps between consecutive tokens of a request that are above its SLO class's `longest_gap_ms`, counted.

A class without that limit has no stalls to count: NaN. Requests that failed on the way count with what they had.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import is_equal
from quantgate.metrics.definition import FloatArray
from quantgate.metrics.itl_ms import ITL_MS
from quantgate.metrics.slo_attainment import SloLimits

GAP_LIMIT = "longest_gap_ms"


def stalls(requests: pa.Table, limits: SloLimits) -> FloatArray:
    """Number of stalls per row of the request table; 0 for a request of a limited class with fewer than two tokens."""
    gaps = ITL_MS(requests)
    counts = np.full(requests.num_rows, np.nan)
    for slo_class, class_limits in limits.items():
        if GAP_LIMIT not in class_limits:
            continue
        above = gaps.rows[gaps.values > class_limits[GAP_LIMIT]]
        in_class = is_equal(requests, "slo_class", slo_class)
        counts[in_class] = np.bincount(above, minlength=requests.num_rows)[in_class]
    return counts
