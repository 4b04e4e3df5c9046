"""Reports of guidellm (`benchmarks.json`, report versions 1 and 2).

Source of names and formulas: vllm-project/guidellm, `src/guidellm/benchmark/schemas/metrics.py` and
`src/guidellm/schemas/request_stats.py`. Its `inter_token_latency_ms` is what we call TPOT, weighted by tokens in its
summaries; its `time_per_output_token_ms` holds the wait for the first token and has no counterpart here. Requests
without a time count as 0 ms in its summaries, so that single requests are preferred where the file holds them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from quantgate.foreign_results.documents import Document
from quantgate.foreign_results.measured_result import Floats, MeasuredResult, TimeFigures, present, rates_of
from quantgate.foreign_results.result_format import Count, ForeignModel, Measured, ResultFormat, label_of, validated

_FILE_NAMES = ("benchmarks.json",)
_TTFT = "first token - start of the request"
_TPOT = "(last token - first token) / (output tokens - 1), per request"
_TPOT_WEIGHTED = f"{_TPOT}, every request weighted by its tokens"
_E2E = "end of the request - its start"
_RATES = {
    "requests_per_s": "successful requests per second, averaged over time",
    "output_tokens_per_s": "output tokens of successful requests per second, averaged over time",
}


class _Percentiles(ForeignModel):
    p50: Measured | None = None
    p95: Measured | None = None
    p99: Measured | None = None


class _Summary(ForeignModel):
    mean: Measured | None = None
    count: Count | None = None
    percentiles: _Percentiles = _Percentiles()


class _ByStatus(ForeignModel):
    successful: _Summary | None = None


class _Totals(ForeignModel):
    successful: Count | None = None
    errored: Count | None = None
    incomplete: Count | None = None


class _Metrics(ForeignModel):
    request_totals: _Totals = _Totals()
    requests_per_second: _ByStatus = _ByStatus()
    request_latency: _ByStatus = _ByStatus()
    time_to_first_token_ms: _ByStatus = _ByStatus()
    inter_token_latency_ms: _ByStatus = _ByStatus()
    output_tokens_per_second: _ByStatus = _ByStatus()


class _Request(ForeignModel):
    request_latency: Measured | None = None
    time_to_first_token_ms: Measured | None = None
    inter_token_latency_ms: Measured | None = None


class _Requests(ForeignModel):
    successful: list[_Request] | None = None


class _Benchmark(ForeignModel):
    metrics: _Metrics
    requests: _Requests = _Requests()
    duration: Measured | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    args: dict[str, Any] = Field(default_factory=dict)
    """Where version 1 keeps the strategy that version 2 keeps in `config`."""

    @property
    def strategy(self) -> dict[str, Any]:
        found = self.config.get("strategy") or self.args.get("strategy")
        return found if isinstance(found, dict) else {}


class _Report(ForeignModel):
    benchmarks: list[_Benchmark]


def _recognises(first: dict[str, Any]) -> bool:
    benchmarks = first.get("benchmarks")
    if not isinstance(benchmarks, list):
        return False
    return not benchmarks or (isinstance(benchmarks[0], dict) and "metrics" in benchmarks[0])


def _read(documents: Sequence[Document], path: Path) -> list[MeasuredResult]:
    return [_result(benchmark, path) for document in documents for benchmark in validated(document, _Report).benchmarks]


def _result(benchmark: _Benchmark, path: Path) -> MeasuredResult:
    metrics, totals = benchmark.metrics, benchmark.metrics.request_totals
    return MeasuredResult(
        label=" ".join([label_of(path, _FILE_NAMES), *_strategy_words(benchmark.strategy)]),
        tool="guidellm",
        source=str(path),
        model=_model(benchmark.config),
        finished=totals.successful,
        failed=totals.errored,
        seconds=benchmark.duration,
        times=_times(benchmark),
        rates=rates_of(
            _RATES,
            {
                "requests_per_s": _mean(metrics.requests_per_second),
                "output_tokens_per_s": _mean(metrics.output_tokens_per_second),
            },
        ),
        notes=_notes(totals),
    )


def _times(benchmark: _Benchmark) -> dict[str, TimeFigures]:
    """From single requests where the file keeps those that the summaries speak of, else from the summaries."""
    requests = benchmark.requests.successful
    if requests and len(requests) == benchmark.metrics.request_totals.successful:
        return present(
            {
                "ttft_from_sent_ms": TimeFigures.from_values(_of(requests, lambda r: r.time_to_first_token_ms), _TTFT),
                "tpot_ms": TimeFigures.from_values(_of(requests, lambda r: r.inter_token_latency_ms), _TPOT),
                "e2e_from_sent_ms": TimeFigures.from_values(_of(requests, lambda r: r.request_latency) * 1000, _E2E),
            }
        )
    metrics, finished = benchmark.metrics, benchmark.metrics.request_totals.successful
    return present(
        {
            "ttft_from_sent_ms": _summary(metrics.time_to_first_token_ms, _TTFT, finished),
            "tpot_ms": _summary(metrics.inter_token_latency_ms, _TPOT_WEIGHTED, finished),
            "e2e_from_sent_ms": _summary(metrics.request_latency, _E2E, finished, scale=1000),
        }
    )


def _of(requests: Sequence[_Request], read: Callable[[_Request], float | None]) -> Floats:
    return np.array([np.nan if read(request) is None else read(request) for request in requests], dtype=np.float64)


def _summary(metric: _ByStatus, definition: str, finished: int | None, scale: float = 1.0) -> TimeFigures | None:
    """n is the number of requests: a weighted summary counts tokens, which carry no percentile of requests."""
    if metric.successful is None:
        return None
    percentiles = metric.successful.percentiles
    n = finished if finished is not None else metric.successful.count
    return TimeFigures.from_summary(
        definition,
        n=n,
        mean=_scaled(metric.successful.mean, scale),
        percentiles={
            "p50": _scaled(percentiles.p50, scale),
            "p95": _scaled(percentiles.p95, scale),
            "p99": _scaled(percentiles.p99, scale),
        },
    )


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def _mean(metric: _ByStatus) -> float | None:
    return metric.successful.mean if metric.successful else None


def _strategy_words(strategy: dict[str, Any]) -> list[str]:
    words = [str(strategy["type_"])] if "type_" in strategy else []
    return [*words, f"{strategy['rate']:g}/s"] if isinstance(strategy.get("rate"), int | float) else words


def _model(config: dict[str, Any]) -> str | None:
    backend = config.get("backend")
    model = backend.get("model") if isinstance(backend, dict) else None
    return model if isinstance(model, str) else None


def _notes(totals: _Totals) -> tuple[str, ...]:
    if not totals.incomplete:
        return ()
    return (f"Requests cut off at the end of the benchmark, which stand in no figure: {totals.incomplete}.",)


GUIDELLM = ResultFormat("guidellm", "report of guidellm, JSON", _FILE_NAMES, _recognises, _read)
