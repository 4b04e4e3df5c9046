"""How long an arm was serving: the sum over its cells of (last end - first schedule).

Arms take turns on one machine, so the time in which the others were served is not this arm's.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import NS_PER_S, floats


def serving_seconds(requests: pa.Table) -> float:
    """Seconds for one arm's rows; a cell is one (pass_index, block_index). 0 for an empty table."""
    if requests.num_rows == 0:
        return 0.0
    cell_keys = np.stack([floats(requests, "pass_index"), floats(requests, "block_index")])
    _, cells = np.unique(cell_keys, axis=1, return_inverse=True)
    starts, ends = np.full(cells.max() + 1, np.inf), np.full(cells.max() + 1, -np.inf)
    np.minimum.at(starts, cells, floats(requests, "scheduled_ns"))
    np.maximum.at(ends, cells, floats(requests, "ended_ns"))
    return float(np.sum(ends - starts) / NS_PER_S)
