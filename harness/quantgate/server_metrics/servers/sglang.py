"""SGLang, started with --enable-metrics.

Names: https://docs.sglang.io/docs/references/production_metrics and `python/sglang/srt/metrics/collector.py`. What we
call a preemption is a retraction there. `token_usage` is the share of the KV pool's tokens in use.
"""

from __future__ import annotations

from quantgate.server_metrics.servers.server_names import SECONDS_TO_MS, ServerNames, TheirName

SGLANG = ServerNames(
    "SGLang",
    "sglang:",
    (
        TheirName("active_requests", "sglang:num_running_reqs"),
        TheirName("waiting_requests", "sglang:num_queue_reqs"),
        TheirName("kv_cache_used_tokens", "sglang:num_used_tokens"),
        TheirName("kv_cache_pool_usage", "sglang:token_usage"),
        TheirName("ttft_ms", "sglang:time_to_first_token_seconds", SECONDS_TO_MS),
        TheirName("itl_ms", "sglang:inter_token_latency_seconds", SECONDS_TO_MS),
        TheirName("itl_ms", "sglang:time_per_output_token_seconds", SECONDS_TO_MS),
        TheirName("queue_time_ms", "sglang:queue_time_seconds", SECONDS_TO_MS),
        TheirName("prompt_tokens", "sglang:prompt_tokens"),
        TheirName("cached_prompt_tokens", "sglang:cached_tokens"),
        TheirName("prefill_tokens", "sglang:realtime_tokens", labels={"mode": "prefill_compute"}),
        TheirName("output_tokens", "sglang:generation_tokens"),
        TheirName("preemption_count", "sglang:num_retracted_requests"),
        TheirName("request_abort_count", "sglang:num_aborted_requests"),
    ),
)
