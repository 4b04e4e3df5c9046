"""What a metric is: a name, a unit, which way is better, and a pure function over a table of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
Direction = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class RequestMetric:
    """One value per row of the request table, in the table's order; NaN where the metric is undefined."""

    name: str
    title: str
    unit: str
    better: Direction
    compute: Callable[[pa.Table], FloatArray]

    def __call__(self, requests: pa.Table) -> FloatArray:
        return self.compute(requests)


@dataclass(frozen=True, slots=True)
class PooledValues:
    """Any number of values per request: `values[i]` belongs to row `rows[i]` of the request table."""

    values: FloatArray
    rows: IndexArray


@dataclass(frozen=True, slots=True)
class PooledMetric:
    """Values pooled over requests; the row of each value is kept, because values of one request are not independent."""

    name: str
    title: str
    unit: str
    better: Direction
    compute: Callable[[pa.Table], PooledValues]

    def __call__(self, requests: pa.Table) -> PooledValues:
        return self.compute(requests)


@dataclass(frozen=True, slots=True)
class StepMetric:
    """One value for a step table (one arm's, or a part of it); None where the steps cannot tell."""

    name: str
    title: str
    unit: str
    better: Direction
    compute: Callable[[pa.Table], float | None]

    def __call__(self, steps: pa.Table) -> float | None:
        return self.compute(steps)
