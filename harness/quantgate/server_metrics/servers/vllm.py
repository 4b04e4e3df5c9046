"""vLLM, V1 engine.

Names: https://docs.vllm.ai/en/stable/usage/metrics/ and `vllm/v1/metrics/loggers.py`. The intervals are those of
https://docs.vllm.ai/en/stable/design/metrics/: queue is queued to scheduled, prefill is scheduled to first token,
decode is first to last token. `kv_cache_usage_perc`, once `gpu_cache_usage_perc`, is a share of 1 despite its name.
`prefix_cache_hits` counts tokens. `time_per_output_token_seconds`, filled token by token, is the older name of
`inter_token_latency_seconds`.
"""

from __future__ import annotations

from quantgate.server_metrics.servers.server_names import SECONDS_TO_MS, ServerNames, TheirName

VLLM = ServerNames(
    "vLLM",
    "vllm:",
    (
        TheirName("active_requests", "vllm:num_requests_running"),
        TheirName("waiting_requests", "vllm:num_requests_waiting"),
        TheirName("kv_cache_pool_usage", "vllm:kv_cache_usage_perc"),
        TheirName("kv_cache_pool_usage", "vllm:gpu_cache_usage_perc"),
        TheirName("ttft_ms", "vllm:time_to_first_token_seconds", SECONDS_TO_MS),
        TheirName("tpot_ms", "vllm:request_time_per_output_token_seconds", SECONDS_TO_MS),
        TheirName("itl_ms", "vllm:inter_token_latency_seconds", SECONDS_TO_MS),
        TheirName("itl_ms", "vllm:time_per_output_token_seconds", SECONDS_TO_MS),
        TheirName("queue_time_ms", "vllm:request_queue_time_seconds", SECONDS_TO_MS),
        TheirName("prefill_latency_ms", "vllm:request_prefill_time_seconds", SECONDS_TO_MS),
        TheirName("decode_latency_ms", "vllm:request_decode_time_seconds", SECONDS_TO_MS),
        TheirName("prompt_tokens", "vllm:prompt_tokens"),
        TheirName("cached_prompt_tokens", "vllm:prompt_tokens_cached"),
        TheirName("cached_prompt_tokens", "vllm:prefix_cache_hits"),
        TheirName("cached_prompt_tokens", "vllm:gpu_prefix_cache_hits"),
        TheirName("output_tokens", "vllm:generation_tokens"),
        TheirName("preemption_count", "vllm:num_preemptions"),
        TheirName("request_abort_count", "vllm:request_success", labels={"finished_reason": "abort"}),
        TheirName("rejected_count", "vllm:admission_rejections"),
    ),
)
