"""Output tokens that reached the driver, per request."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import floats
from quantgate.metrics.definition import FloatArray, RequestMetric


def _compute(requests: pa.Table) -> FloatArray:
    return floats(requests, "output_tokens")


OUTPUT_TOKENS = RequestMetric("output_tokens", "Output tokens", "tokens", "higher", _compute)
