"""Longest gap between two consecutive tokens of a request: how long its reader sat before a standing text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.definition import FloatArray, RequestMetric
from quantgate.metrics.itl_ms import ITL_MS


def _compute(requests: pa.Table) -> FloatArray:
    gaps = ITL_MS(requests)
    longest = np.full(requests.num_rows, -np.inf)
    np.maximum.at(longest, gaps.rows, gaps.values)
    return np.where(np.isneginf(longest), np.nan, longest)


LONGEST_GAP_MS = RequestMetric("longest_gap_ms", "Longest gap between tokens", "ms", "lower", _compute)
