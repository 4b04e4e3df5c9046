"""Every metric by its name. Adding one: write its file, add it here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from quantgate.metrics.batch_size_decode import BATCH_SIZE_DECODE
from quantgate.metrics.batch_size_prefill import BATCH_SIZE_PREFILL
from quantgate.metrics.cached_prompt_share import CACHED_PROMPT_SHARE
from quantgate.metrics.client_overhead_ms import CLIENT_OVERHEAD_MS
from quantgate.metrics.decode_latency_ms import DECODE_LATENCY_MS
from quantgate.metrics.decode_tok_s import DECODE_TOK_S, DECODE_TOK_S_SHARE
from quantgate.metrics.definition import PooledMetric, RequestMetric, StepMetric
from quantgate.metrics.e2e_ms import E2E_MS
from quantgate.metrics.failed import FAILED
from quantgate.metrics.itl_ms import ITL_MS
from quantgate.metrics.kv_utilization import KV_UTILIZATION
from quantgate.metrics.longest_gap_ms import LONGEST_GAP_MS
from quantgate.metrics.output_tokens import OUTPUT_TOKENS
from quantgate.metrics.prefill_latency_ms import PREFILL_LATENCY_MS
from quantgate.metrics.prefill_tok_s import PREFILL_TOK_S, PREFILL_TOK_S_SHARE
from quantgate.metrics.queue_time_ms import QUEUE_TIME_MS
from quantgate.metrics.recompute_tax import RECOMPUTE_TAX
from quantgate.metrics.tail_waste import TAIL_WASTE
from quantgate.metrics.time_to_first_answer_ms import TIME_TO_FIRST_ANSWER_MS
from quantgate.metrics.tpot_ms import TPOT_MS
from quantgate.metrics.ttft_from_sent_ms import TTFT_FROM_SENT_MS
from quantgate.metrics.ttft_ms import TTFT_MS
from quantgate_engine.errors import ConfigurationError

REQUEST_METRICS: dict[str, RequestMetric] = {
    metric.name: metric
    for metric in (
        TTFT_MS, TTFT_FROM_SENT_MS, TIME_TO_FIRST_ANSWER_MS, TPOT_MS, LONGEST_GAP_MS, E2E_MS, QUEUE_TIME_MS,
        PREFILL_LATENCY_MS, DECODE_LATENCY_MS, OUTPUT_TOKENS, FAILED, CLIENT_OVERHEAD_MS,
    )
}  # fmt: skip
POOLED_METRICS: dict[str, PooledMetric] = {ITL_MS.name: ITL_MS}
STEP_METRICS: dict[str, StepMetric] = {
    metric.name: metric
    for metric in (
        PREFILL_TOK_S, PREFILL_TOK_S_SHARE, DECODE_TOK_S, DECODE_TOK_S_SHARE, BATCH_SIZE_PREFILL, BATCH_SIZE_DECODE,
        KV_UTILIZATION, TAIL_WASTE, RECOMPUTE_TAX, CACHED_PROMPT_SHARE,
    )
}  # fmt: skip

_Metric = TypeVar("_Metric")


def _look_up(name: str, metrics: Mapping[str, _Metric], kind: str) -> _Metric:
    if name not in metrics:
        raise ConfigurationError(f"There is no {kind} metric called {name!r}; expected one of: {', '.join(metrics)}.")
    return metrics[name]


def request_metric(name: str) -> RequestMetric:
    """The metric called `name`; `request_metric("ttft_ms")(requests)` gives one value per row of the table.

    Raises ConfigurationError for an unknown name.
    """
    return _look_up(name, REQUEST_METRICS, "request")


def pooled_metric(name: str) -> PooledMetric:
    """As `request_metric`, for metrics with several values per request."""
    return _look_up(name, POOLED_METRICS, "pooled")


def step_metric(name: str) -> StepMetric:
    """As `request_metric`, for metrics over the step table."""
    return _look_up(name, STEP_METRICS, "step")
