"""Decode latency: finished - first token, both on the engine's clock, for finished requests."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.definition import FloatArray, RequestMetric
from quantgate.metrics.finished_only import milliseconds_of_finished


def _compute(requests: pa.Table) -> FloatArray:
    return milliseconds_of_finished(requests, "engine_first_token_ns", "engine_finished_ns")


DECODE_LATENCY_MS = RequestMetric("decode_latency_ms", "Decode latency", "ms", "lower", _compute)
