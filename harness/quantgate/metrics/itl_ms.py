"""Inter-token latency: the gaps between consecutive tokens of a request as they reached the driver, pooled.

Tokens that arrive in one event share a time, so their gap is 0 (a stream that delivers several tokens at once is
not smoothed into even gaps). Those of a client that reads slowly by plan are its own and left out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quantgate.metrics.columns import NS_PER_MS
from quantgate.metrics.definition import PooledMetric, PooledValues
from quantgate.metrics.slow_readers import read_slowly


def _compute(requests: pa.Table) -> PooledValues:
    column = requests.column("token_times_ns")
    times = np.asarray(pc.list_flatten(column).to_numpy(), dtype=np.int64)
    lengths = np.asarray(pc.list_value_length(column).to_numpy(), dtype=np.int64)
    rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    counts = (rows[1:] == rows[:-1]) & ~read_slowly(requests)[rows[1:]]
    return PooledValues(values=np.diff(times)[counts] / NS_PER_MS, rows=rows[1:][counts])


ITL_MS = PooledMetric("itl_ms", "Inter-token latency", "ms", "lower", _compute)
