"""Mean number of requests that decode in a step, over the steps that decode at all."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.definition import StepMetric
from quantgate.metrics.step_sums import mean_where_positive


def _compute(steps: pa.Table) -> float | None:
    return mean_where_positive(steps, "batch_size_decode")


BATCH_SIZE_DECODE = StepMetric("batch_size_decode", "Mean decode batch size", "requests", "higher", _compute)
