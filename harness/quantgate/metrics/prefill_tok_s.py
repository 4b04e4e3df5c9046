"""Prefill throughput: tokens computed per second of prefill work, from the steps that did nothing else.

The tokens are those of the prompts and, after a preemption, those that prefill computes again, drawn ones included: the
time of the steps is spent on all of them.

Steps that mix both kinds of work cannot be split without a model of their cost, so they are left out;
`prefill_tok_s_share` says how much of the prefill work the figure speaks for.
"""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.definition import StepMetric
from quantgate.metrics.step_sums import pure_token_rate, pure_token_share


def _rate(steps: pa.Table) -> float | None:
    return pure_token_rate(steps, "prefill_tokens", "decode_tokens")


def _share(steps: pa.Table) -> float | None:
    return pure_token_share(steps, "prefill_tokens", "decode_tokens")


PREFILL_TOK_S = StepMetric("prefill_tok_s", "Prefill throughput", "tokens/s", "higher", _rate)
PREFILL_TOK_S_SHARE = StepMetric(
    "prefill_tok_s_share", "Share of prefill tokens in pure prefill steps", "ratio", "higher", _share
)
