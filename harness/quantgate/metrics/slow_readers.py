"""Clients that read slowly by plan: what comes after an answer's first token is at their own pace, not at the arm's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.metrics.columns import floats
from quantgate.metrics.definition import FloatArray


def read_slowly(requests: pa.Table) -> NDArray[np.bool_]:
    """Which rows of the request table such clients read."""
    return np.asarray(~np.isnan(floats(requests, "read_tokens_per_s")))


def at_the_arms_pace(values: FloatArray, requests: pa.Table) -> FloatArray:
    """The values, NaN for requests that were read slowly."""
    return np.where(read_slowly(requests), np.nan, values)
