"""Cached prompt share: prompt tokens found in the cache / those found and those computed in prefill."""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import floats
from quantgate.metrics.definition import StepMetric
from quantgate.metrics.step_sums import ratio


def _compute(steps: pa.Table) -> float | None:
    cached = float(floats(steps, "cached_prompt_tokens").sum())
    return ratio(cached, cached + float(floats(steps, "prefill_tokens").sum()))


CACHED_PROMPT_SHARE = StepMetric("cached_prompt_share", "Prompt tokens from the cache", "ratio", "higher", _compute)
