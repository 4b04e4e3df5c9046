"""Prefill latency: from admitted to the first token, both on the engine's clock."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import milliseconds_between
from quantgate.metrics.definition import FloatArray, RequestMetric


def _compute(requests: pa.Table) -> FloatArray:
    return milliseconds_between(requests, "admitted_ns", "engine_first_token_ns")


PREFILL_LATENCY_MS = RequestMetric("prefill_latency_ms", "Prefill latency", "ms", "lower", _compute)
