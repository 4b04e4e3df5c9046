"""Our names for what servers tell of themselves, whatever each of them calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MetricKind = Literal["gauge", "counter", "histogram"]
"""gauge: a value of the moment; counter: only grows; histogram: sum and count of many values, which both only grow."""

Across = Literal["sum", "max"]


@dataclass(frozen=True, slots=True)
class ServerMetric:
    """across: how values of one scrape with different labels (engines, ranks) make one value of the server."""

    name: str
    kind: MetricKind
    unit: str
    meaning: str
    across: Across = "sum"


_ALL = (
    ServerMetric("active_requests", "gauge", "requests", "requests that are being computed"),
    ServerMetric("waiting_requests", "gauge", "requests", "requests that wait for their turn"),
    ServerMetric("kv_cache_used_tokens", "gauge", "tokens", "tokens that the KV cache holds"),
    ServerMetric("kv_cache_pool_usage", "gauge", "share", "share of the KV cache's memory that is in use", "max"),
    ServerMetric(
        "kv_cache_block_utilization", "gauge", "share", "token slots in use / slots in allocated blocks", "max"
    ),
    ServerMetric("batch_size_prefill", "histogram", "requests", "prefill requests per step that has any"),
    ServerMetric("batch_size_decode", "histogram", "requests", "decoding requests per step that has any"),
    ServerMetric("ttft_ms", "histogram", "ms", "arrival to first token, on the server's clock"),
    ServerMetric(
        "tpot_ms", "histogram", "ms", "a request's time per output token after the first, on the server's clock"
    ),
    ServerMetric("itl_ms", "histogram", "ms", "time from token to token, on the server's clock"),
    ServerMetric("queue_time_ms", "histogram", "ms", "waiting for the scheduler"),
    ServerMetric("prefill_latency_ms", "histogram", "ms", "first scheduled to first token"),
    ServerMetric("decode_latency_ms", "histogram", "ms", "first token to last token"),
    ServerMetric("prompt_tokens", "counter", "tokens", "tokens of prompts, those from the prefix cache included"),
    ServerMetric("cached_prompt_tokens", "counter", "tokens", "prompt tokens found in the prefix cache"),
    ServerMetric("prefill_tokens", "counter", "tokens", "tokens that prefill computed"),
    ServerMetric("output_tokens", "counter", "tokens", "tokens that were generated"),
    ServerMetric("recomputed_tokens", "counter", "tokens", "tokens computed again after a preemption"),
    ServerMetric("prefill_seconds", "counter", "s", "time spent on prompts"),
    ServerMetric("decode_seconds", "counter", "s", "time spent on generating"),
    ServerMetric("preemption_count", "counter", "count", "requests that lost their place and began again"),
    ServerMetric("request_abort_count", "counter", "count", "requests that were aborted"),
    ServerMetric("rejected_count", "counter", "count", "requests that were turned away"),
    ServerMetric("oom_count", "counter", "count", "times that memory ran out"),
)

SERVER_METRICS: dict[str, ServerMetric] = {metric.name: metric for metric in _ALL}

OTHER = "other"
"""Stands as the metric's name in the rows of servers that we have no table for."""
