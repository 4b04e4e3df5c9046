"""KV utilization: token slots in use / slots in allocated blocks, averaged over the allocated block-time.

Each step's `kv_cache_block_utilization` is that ratio at the step; weighting by allocated slots x duration makes the
mean the used slot-time over the allocated slot-time, so that long and full steps count for what they are. With pools
both are those of all pools together.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import floats, is_equal
from quantgate.metrics.definition import FloatArray, StepMetric
from quantgate.metrics.pool_totals import over_pools, pool_names
from quantgate.metrics.step_sums import ratio


def _compute(steps: pa.Table) -> float | None:
    durations, slots = floats(steps, "duration_ns"), _allocated_slots(steps)
    used = over_pools(steps, slots * floats(steps, "kv_cache_block_utilization"))
    return ratio(float((used * durations).sum()), float((over_pools(steps, slots) * durations).sum()))


def _allocated_slots(steps: pa.Table) -> FloatArray:
    """Slots in allocated blocks, in blocks where all are of one size: only pools may differ in it."""
    slots = floats(steps, "kv_allocated_blocks").copy()
    for pool in pool_names(steps):
        mine = is_equal(steps, "pool", pool)
        slots[mine] *= _block_size(steps.filter(pa.array(mine)))
    return slots


def _block_size(steps: pa.Table) -> float:
    """Slots of a block of one pool: used tokens / (utilization x blocks), at any step that uses some; else 1."""
    filled = floats(steps, "kv_cache_block_utilization") * floats(steps, "kv_allocated_blocks")
    sizes = floats(steps, "kv_cache_used_tokens")[filled > 0] / filled[filled > 0]
    return float(np.median(sizes).round()) if sizes.size else 1.0


KV_UTILIZATION = StepMetric("kv_utilization", "KV utilization", "ratio", "higher", _compute)
