"""Cached prompt share: prompt tokens found in the cache / those found and those that prefill computed first.

Tokens that it computed again after a preemption are left out: the cache was asked for them once. Computed first are the
prompt, and for each preemption the one token that had been drawn and was not computed yet.
"""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.columns import floats
from quantgate.metrics.definition import StepMetric
from quantgate.metrics.step_sums import ratio


def _compute(steps: pa.Table) -> float | None:
    cached = float(floats(steps, "cached_prompt_tokens").sum())
    first_time = float((floats(steps, "prefill_tokens") - floats(steps, "recomputed_tokens")).sum())
    return ratio(cached, cached + first_time)


CACHED_PROMPT_SHARE = StepMetric("cached_prompt_share", "Prompt tokens from the cache", "ratio", "higher", _compute)
