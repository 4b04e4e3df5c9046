"""Decode throughput: output tokens per second of decode work, from the steps that did nothing else.

Steps that mix both kinds of work cannot be split without a model of their cost, so they are left out;
`decode_tok_s_share` says how much of the decode work the figure speaks for.
"""

from __future__ import annotations

import pyarrow as pa

from quantgate.metrics.definition import StepMetric
from quantgate.metrics.step_sums import pure_token_rate, pure_token_share


def _rate(steps: pa.Table) -> float | None:
    return pure_token_rate(steps, "decode_tokens", "prefill_tokens")


def _share(steps: pa.Table) -> float | None:
    return pure_token_share(steps, "decode_tokens", "prefill_tokens")


DECODE_TOK_S = StepMetric("decode_tok_s", "Decode throughput", "tokens/s", "higher", _rate)
DECODE_TOK_S_SHARE = StepMetric(
    "decode_tok_s_share", "Share of decode tokens in pure decode steps", "ratio", "higher", _share
)
