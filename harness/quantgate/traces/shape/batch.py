"""Some rows of a trace as columns: what the shape of traffic is computed from, whatever format they came in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

UNKNOWN_LENGTH = -1

MOST_ROWS = 1 << 20
"""Rows of a batch at most, which keeps the sums over one batch within 64 bits (`sum_of_squares`)."""


@dataclass(frozen=True, slots=True)
class ArrivalBatch:
    """Rows in order of time. `scheduled_ns` counts from the trace's start, at most 1e18 (`LONGEST_SECONDS`).

    input_tokens: `UNKNOWN_LENGTH` where the trace does not tell a prompt's length.
    """

    scheduled_ns: Integers
    input_tokens: Integers
    output_tokens: Integers
