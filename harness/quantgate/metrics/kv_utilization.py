"""KV utilization: token slots in use / slots in allocated blocks, averaged over the allocated block-time.

Each step's `kv_cache_block_utilization` is that ratio at the step; weighting by allocated blocks x duration makes
the mean the used slot-time over the allocated slot-time, so that long and full steps count for what they are.
"""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import floats
from quantgate.metrics.definition import StepMetric
from quantgate.metrics.step_sums import ratio


def _compute(steps: pa.Table) -> float | None:
    weights = floats(steps, "kv_allocated_blocks") * floats(steps, "duration_ns")
    return ratio(float((floats(steps, "kv_cache_block_utilization") * weights).sum()), float(weights.sum()))


KV_UTILIZATION = StepMetric("kv_utilization", "KV utilization", "ratio", "higher", _compute)
