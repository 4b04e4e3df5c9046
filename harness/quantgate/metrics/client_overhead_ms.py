"""What the client itself added: the longest time from a chunk's arrival at this machine to its handing on, per request.

Measured over HTTP only; an in-process target has no such way. Large values mean that the times of this request are the
client's as much as the server's.
"""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import NS_PER_MS, floats
from quantgate.metrics.definition import FloatArray, RequestMetric


def _compute(requests: pa.Table) -> FloatArray:
    return floats(requests, "client_overhead_ns") / NS_PER_MS


CLIENT_OVERHEAD_MS = RequestMetric("client_overhead_ms", "Client overhead", "ms", "lower", _compute)
