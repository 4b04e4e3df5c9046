"""Durations that exist only for requests that came to their own end."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import is_equal, milliseconds_between
from quantgate.metrics.definition import FloatArray


def milliseconds_of_finished(requests: pa.Table, start: str, end: str) -> FloatArray:
    """end - start in ms; NaN unless the request's status is `finished`: a cut-off request would look fast."""
    return np.where(is_equal(requests, "status", "finished"), milliseconds_between(requests, start, end), np.nan)
