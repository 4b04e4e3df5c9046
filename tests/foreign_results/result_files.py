"""Result files of other tools, as small as they may be, in the shapes that those tools write."""

from __future__ import annotations

from typing import Any


def guidellm_summary(mean: float, p50: float, p95: float, p99: float, count: int) -> dict[str, Any]:
    return {
        "successful": {
            "mean": mean, "median": p50, "mode": p50, "variance": 1.0, "std_dev": 1.0, "min": 0.0, "max": 1e4,
            "count": count, "total_sum": mean * count,
            "percentiles": {"p001": 0.0, "p01": 0.0, "p50": p50, "p95": p95, "p99": p99, "p999": 1e4},
        },
        "errored": None,
        "incomplete": None,
        "total": None,
    }  # fmt: skip


def guidellm_report(requests: list[dict[str, Any]] | None = None, successful: int = 400) -> dict[str, Any]:
    """Version 2, one benchmark. `requests`: the successful ones that the file keeps."""
    return {
        "metadata": {"version": 2, "guidellm_version": "0.6.0"},
        "config": {},
        "benchmarks": [
            {
                "type_": "generative_benchmark",
                "config": {
                    "strategy": {"type_": "constant", "rate": 2.0},
                    "backend": {"target": "http://localhost:8000", "model": "llama"},
                },
                "duration": 200.0,
                "metrics": {
                    "request_totals": {
                        "successful": successful,
                        "errored": 3,
                        "incomplete": 2,
                        "total": successful + 5,
                    },
                    "requests_per_second": guidellm_summary(2.0, 2.0, 2.0, 2.0, successful),
                    "request_latency": guidellm_summary(1.5, 1.4, 2.5, 3.5, successful),
                    "time_to_first_token_ms": guidellm_summary(120.0, 110.0, 200.0, 300.0, successful),
                    "inter_token_latency_ms": guidellm_summary(11.0, 10.0, 20.0, 30.0, successful * 127),
                    "time_per_output_token_ms": guidellm_summary(13.0, 12.0, 22.0, 32.0, successful * 128),
                    "output_tokens_per_second": guidellm_summary(256.0, 250.0, 300.0, 310.0, successful),
                },
                "requests": {"successful": requests or [], "errored": [], "incomplete": []},
            }
        ],
    }


def vllm_result(**changes: Any) -> dict[str, Any]:
    return {
        "date": "20270131-101500", "endpoint_type": "openai", "backend": "openai", "label": None, "model_id": "llama",
        "tokenizer_id": "llama", "num_prompts": 102, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": None,
        "duration": 50.0, "completed": 100, "failed": 2, "total_input_tokens": 10_000, "total_output_tokens": 12_800,
        "request_throughput": 2.0, "request_goodput": None, "output_throughput": 256.0, "total_token_throughput": 456.0,
        "mean_ttft_ms": 120.0, "median_ttft_ms": 110.0, "std_ttft_ms": 9.0, "p99_ttft_ms": 300.0,
        "mean_tpot_ms": 11.0, "median_tpot_ms": 10.0, "std_tpot_ms": 1.0, "p99_tpot_ms": 30.0,
        "mean_itl_ms": 11.5, "median_itl_ms": 10.5, "std_itl_ms": 1.0, "p99_itl_ms": 31.0,
    } | changes  # fmt: skip


DETAILED_VLLM: dict[str, Any] = {
    "completed": 2,
    "failed": 1,
    "num_prompts": 3,
    "input_lens": [5, 5, 5],
    "output_lens": [3, 2, 0],
    "ttfts": [0.1, 0.2, 0.0],
    "itls": [[0.01, 0.03], [0.02], []],
    "generated_texts": ["a b c", "a b", ""],
    "errors": ["", "", "Internal Server Error"],
}


def aiperf_summary(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": "1.4",
        "aiperf_version": "0.12.0",
        "request_throughput": {"unit": "requests/sec", "avg": 2.0},
        "request_latency": {"unit": "ms", "avg": 1500.0, "p50": 1400.0, "p95": 2500.0, "p99": 3500.0, "count": 100},
        "request_count": {"unit": "requests", "avg": 100.0},
        "error_request_count": {"unit": "requests", "avg": 2.0},
        "time_to_first_token": {"unit": "ms", "avg": 120.0, "p50": 110.0, "p95": 200.0, "p99": 300.0, "count": 100},
        "inter_token_latency": {"unit": "ms", "avg": 11.0, "p50": 10.0, "p95": 20.0, "p99": 30.0, "count": 98},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 256.0},
        "goodput": {"unit": "requests/sec", "avg": 1.75},
        "benchmark_duration": {"unit": "sec", "avg": 50.0},
        "input_config": {"endpoint": {"model_names": ["llama"]}},
        "was_cancelled": False,
        "error_summary": [{"error_details": {"code": 500}, "count": 2}],
    } | changes


def aiperf_record(
    start_s: float, ttft_ms: float, gaps_ms: list[float], *, good: int | None = None, **metadata: Any
) -> dict[str, Any]:
    """A request that starts at `start_s` and answers with 1 + len(gaps_ms) tokens."""
    latency_ms = ttft_ms + sum(gaps_ms)
    metrics: dict[str, Any] = {
        "time_to_first_token": {"value": ttft_ms * 1e6, "unit": "ns"},
        "request_latency": {"value": latency_ms, "unit": "ms"},
        "inter_chunk_latency": {"value": gaps_ms, "unit": "ms"},
        "output_sequence_length": {"value": 1 + len(gaps_ms), "unit": "tokens"},
    }
    if gaps_ms:
        metrics["inter_token_latency"] = {"value": sum(gaps_ms) / len(gaps_ms), "unit": "ms"}
    if good is not None:
        metrics["good_request_count"] = {"value": good, "unit": "requests"}
    return {
        "metadata": {
            "session_num": 0,
            "request_start_ns": round(start_s * 1e9),
            "request_end_ns": round(start_s * 1e9 + latency_ms * 1e6),
            "benchmark_phase": "profiling",
            "was_cancelled": False,
        }
        | metadata,
        "metrics": metrics,
        "error": None,
    }
