"""Time per output token: (last token - first token) / (output tokens - 1), where a request has at least 2 tokens.

None where its client reads slowly by plan: that would be the client's own speed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import floats, milliseconds_between
from quantgate.metrics.definition import FloatArray, RequestMetric
from quantgate.metrics.slow_readers import at_the_arms_pace


def _compute(requests: pa.Table) -> FloatArray:
    gaps = floats(requests, "output_tokens") - 1
    times = milliseconds_between(requests, "first_token_ns", "last_token_ns")
    return at_the_arms_pace(times / np.where(gaps >= 1, gaps, np.nan), requests)


TPOT_MS = RequestMetric("tpot_ms", "Time per output token", "ms", "lower", _compute)
