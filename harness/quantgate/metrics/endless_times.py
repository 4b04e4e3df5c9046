"""Times in which an unanswered request is infinitely slow: no arm may look faster by an answer that never came."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.metrics.columns import floats
from quantgate.metrics.definition import FloatArray
from quantgate.metrics.failed import FAILED
from quantgate.metrics.registry import request_metric


def unanswered(requests: pa.Table) -> NDArray[np.bool_]:
    """Which requests failed, were rejected or aborted against the plan, or ended without a single token."""
    return np.asarray((FAILED(requests) == 1) | (floats(requests, "output_tokens") == 0))


def times_or_endless(name: str, requests: pa.Table) -> FloatArray:
    """The request metric `name` in ms, infinite for unanswered requests.

    NaN only where an answer has no such time (TPOT of a single token, the end of one that its client left on plan).
    Raises ConfigurationError for an unknown name.
    """
    return np.where(unanswered(requests), np.inf, request_metric(name)(requests))
