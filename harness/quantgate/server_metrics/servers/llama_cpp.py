"""llama.cpp's llama-server, started with --metrics.

Names: `tools/server/README.md`, section "GET /metrics". A request is deferred while no slot is free for it.
`prompt_tokens_total` counts computed tokens, without those taken from the cache. `kv_cache_usage_ratio` and
`kv_cache_tokens` were removed in 2025; older builds still have them.
"""

from __future__ import annotations

from quantgate.server_metrics.servers.server_names import ServerNames, TheirName

LLAMA_CPP = ServerNames(
    "llama.cpp",
    "llamacpp:",
    (
        TheirName("active_requests", "llamacpp:requests_processing"),
        TheirName("waiting_requests", "llamacpp:requests_deferred"),
        TheirName("kv_cache_used_tokens", "llamacpp:kv_cache_tokens"),
        TheirName("kv_cache_pool_usage", "llamacpp:kv_cache_usage_ratio"),
        TheirName("prefill_tokens", "llamacpp:prompt_tokens"),
        TheirName("cached_prompt_tokens", "llamacpp:prompt_tokens_cached"),
        TheirName("output_tokens", "llamacpp:tokens_predicted"),
        TheirName("prefill_seconds", "llamacpp:prompt_seconds"),
        TheirName("decode_seconds", "llamacpp:tokens_predicted_seconds"),
    ),
)
