"""What each server answers at /metrics, shortened to what a test needs."""

from __future__ import annotations

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 7.0
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.5
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="m"} 4.0
# TYPE vllm:num_preemptions_created gauge
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e+09
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 160.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 90.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"} 2.0
# TYPE vllm:request_queue_time_seconds histogram
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="m"} 5.0
vllm:request_queue_time_seconds_bucket{engine="0",le="+Inf",model_name="m"} 8.0
vllm:request_queue_time_seconds_count{engine="0",model_name="m"} 8.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 2.5
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1e+09
"""

SGLANG = """\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",tp_rank="0"} 6.0
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m",tp_rank="0"} 0.28
# TYPE sglang:num_used_tokens gauge
sglang:num_used_tokens{model_name="m",tp_rank="0"} 123859.0
# TYPE sglang:num_retracted_requests_total counter
sglang:num_retracted_requests_total{model_name="m",tp_rank="0"} 9.0
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",model_name="m"} 40.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 2.0
# TYPE sglang:realtime_tokens_total counter
sglang:realtime_tokens_total{mode="prefill_compute",model_name="m"} 700.0
sglang:realtime_tokens_total{mode="decode",model_name="m"} 70.0
# TYPE sglang:inter_token_latency_seconds histogram
sglang:inter_token_latency_seconds_sum{model_name="m"} 3.0
sglang:inter_token_latency_seconds_count{model_name="m"} 200.0
"""

LLAMA_CPP = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 6886
# HELP llamacpp:prompt_seconds_total Prompt process time
# TYPE llamacpp:prompt_seconds_total counter
llamacpp:prompt_seconds_total 29.03
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 3469
# TYPE llamacpp:tokens_predicted_seconds_total counter
llamacpp:tokens_predicted_seconds_total 35.44
# TYPE llamacpp:n_tokens_max counter
llamacpp:n_tokens_max 512
# TYPE llamacpp:n_busy_slots_per_decode gauge
llamacpp:n_busy_slots_per_decode nan
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 4
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 1
"""

TGI = """\
# TYPE tgi_request_count counter
tgi_request_count 253
# TYPE tgi_queue_size gauge
tgi_queue_size 5
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 8
# TYPE tgi_request_queue_duration histogram
tgi_request_queue_duration_bucket{le="0.001"} 200
tgi_request_queue_duration_bucket{le="+Inf"} 253
tgi_request_queue_duration_sum 12.65
tgi_request_queue_duration_count 253
# TYPE tgi_request_input_length histogram
tgi_request_input_length_bucket{le="+Inf"} 253
tgi_request_input_length_sum 32384
tgi_request_input_length_count 253
"""

QUANTGATE = """\
# TYPE active_requests gauge
active_requests 2.0
# TYPE kv_cache_block_utilization gauge
kv_cache_block_utilization 0.75
# TYPE request_abort_count_total counter
request_abort_count_total{cause="timeout"} 1.0
request_abort_count_total{cause="disconnect"} 4.0
# TYPE queue_time_ms histogram
queue_time_ms_bucket{le="+Inf"} 10.0
queue_time_ms_count 10.0
queue_time_ms_sum 250.0
"""

UNKNOWN = """\
# TYPE my_queue gauge
my_queue 3
# TYPE my_tokens counter
my_tokens_total 30
# TYPE my_seconds summary
my_seconds{quantile="0.5"} 1
my_seconds_sum 9
my_seconds_count 4
untyped_thing 5
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 99
"""
