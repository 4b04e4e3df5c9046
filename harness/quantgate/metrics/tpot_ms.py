"""Time per output token: (last token - first token) / (output tokens - 1), where a request has at least 2 tokens."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import floats, milliseconds_between
from quantgate.metrics.definition import FloatArray, RequestMetric


def _compute(requests: pa.Table) -> FloatArray:
    gaps = floats(requests, "output_tokens") - 1
    return milliseconds_between(requests, "first_token_ns", "last_token_ns") / np.where(gaps >= 1, gaps, np.nan)


TPOT_MS = RequestMetric("tpot_ms", "Time per output token", "ms", "lower", _compute)
