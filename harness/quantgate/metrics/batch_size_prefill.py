"""Mean number of requests that prefill in a step, over the steps that prefill at all."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.definition import StepMetric
from quantgate.metrics.step_sums import mean_where_positive


def _compute(steps: pa.Table) -> float | None:
    return mean_where_positive(steps, "batch_size_prefill")


BATCH_SIZE_PREFILL = StepMetric("batch_size_prefill", "Mean prefill batch size", "requests", "higher", _compute)
