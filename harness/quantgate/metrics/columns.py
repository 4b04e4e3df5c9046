"""Columns of the run's tables as numpy arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.metrics.definition import FloatArray

NS_PER_MS = 1e6
NS_PER_S = 1e9


def floats(table: pa.Table, name: str) -> FloatArray:
    """A numeric column as float64, NaN for null. Times are exact up to 2^53 ns (104 days from the run's start)."""
    column = table.column(name).cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def is_equal(table: pa.Table, name: str, value: str) -> NDArray[np.bool_]:
    """Which rows of a text column hold `value`."""
    encoded = table.column(name).combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    known = encoded.dictionary.to_pylist()
    return np.asarray(codes == (known.index(value) if value in known else -2), dtype=np.bool_)


def milliseconds_between(table: pa.Table, start: str, end: str) -> FloatArray:
    """end - start of two time columns, ms; NaN where either is missing."""
    return (floats(table, end) - floats(table, start)) / NS_PER_MS
