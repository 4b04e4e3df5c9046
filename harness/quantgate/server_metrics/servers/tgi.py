"""Text Generation Inference.

Names: `docs/source/reference/metrics.md` of huggingface/text-generation-inference. Durations are seconds. It exports no
time to first token; `tgi_batch_inference_duration` is split by method (prefill, decode), but it times batches, not
requests, so that it is no latency of ours. The sums of the two histograms of lengths count tokens.
"""

from __future__ import annotations

from quantgate.server_metrics.servers.server_names import SECONDS_TO_MS, ServerNames, TheirName

TGI = ServerNames(
    "TGI",
    "tgi_",
    (
        TheirName("active_requests", "tgi_batch_current_size"),
        TheirName("waiting_requests", "tgi_queue_size"),
        TheirName("tpot_ms", "tgi_request_mean_time_per_token_duration", SECONDS_TO_MS),
        TheirName("queue_time_ms", "tgi_request_queue_duration", SECONDS_TO_MS),
        TheirName("prompt_tokens", "tgi_request_input_length_sum"),
        TheirName("output_tokens", "tgi_request_generated_tokens_sum"),
    ),
)
