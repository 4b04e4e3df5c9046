"""Recompute tax: tokens computed again after preemption / all tokens computed."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import floats
from quantgate.metrics.definition import StepMetric
from quantgate.metrics.step_sums import ratio


def _compute(steps: pa.Table) -> float | None:
    computed = floats(steps, "prefill_tokens").sum() + floats(steps, "decode_tokens").sum()
    return ratio(float(floats(steps, "recomputed_tokens").sum()), float(computed))


RECOMPUTE_TAX = StepMetric("recompute_tax", "Recompute tax", "ratio", "lower", _compute)
