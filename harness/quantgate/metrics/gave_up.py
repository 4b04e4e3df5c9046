"""Clients that left because their time was over, not because they had all that they wanted.

Whether they stay to the end is up to the arm: one that loses more of them must not look better for it. Those that read
slowly by plan spent the time themselves and do not count.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.metrics.columns import is_equal
from quantgate.metrics.slow_readers import read_slowly


def gave_up(requests: pa.Table) -> NDArray[np.bool_]:
    """Which rows of the request table such clients left."""
    return np.asarray(is_equal(requests, "abort_cause", "impatience") & ~read_slowly(requests))
