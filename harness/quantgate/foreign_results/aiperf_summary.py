"""Summaries of aiperf (`profile_export_aiperf.json`): statistics over all requests.

Source of names: ai-dynamo/aiperf, `docs/reference/json-export-schema.md` (schema 1.0 to 1.5) and the formulas in
`metrics/types`. A metric that does not apply is absent; a count or rate carries its value in `avg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quantgate.foreign_results.aiperf_units import E2E, ITL, RATES, TPOT, TTFT, TimeSummary
from quantgate.foreign_results.documents import Document
from quantgate.foreign_results.measured_result import MeasuredResult, TimeFigures, present, rates_of
from quantgate.foreign_results.result_format import Count, ForeignModel, Measured, ResultFormat, label_of, validated

_FILE_NAMES = ("profile_export_aiperf.json",)


class _Scalar(ForeignModel):
    avg: Measured | None = None


class _ErrorCount(ForeignModel):
    count: Count = 1


class _Summary(ForeignModel):
    time_to_first_token: TimeSummary | None = None
    inter_token_latency: TimeSummary | None = None
    inter_chunk_latency: TimeSummary | None = None
    request_latency: TimeSummary | None = None
    benchmark_duration: TimeSummary | None = None
    request_count: _Scalar | None = None
    error_request_count: _Scalar | None = None
    error_summary: list[_ErrorCount] | None = None
    request_throughput: _Scalar | None = None
    output_token_throughput: _Scalar | None = None
    goodput: _Scalar | None = None
    was_cancelled: bool | None = None


def _recognises(first: dict[str, Any]) -> bool:
    block = first.get("request_latency", first.get("time_to_first_token"))
    return isinstance(block, dict) and "unit" in block


def _read(documents: Sequence[Document], path: Path) -> list[MeasuredResult]:
    return [_result(validated(document, _Summary), path) for document in documents]


def _result(summary: _Summary, path: Path) -> MeasuredResult:
    finished = _whole(summary.request_count)
    duration = summary.benchmark_duration
    seconds = duration.milliseconds(duration.avg) if duration else None
    return MeasuredResult(
        label=label_of(path, _FILE_NAMES),
        tool="aiperf",
        source=str(path),
        model=None,
        finished=finished,
        failed=_failed(summary),
        seconds=None if seconds is None else seconds / 1000,
        times=present(
            {
                "ttft_from_sent_ms": _figures(summary.time_to_first_token, TTFT, finished),
                "tpot_ms": _figures(summary.inter_token_latency, TPOT, finished),
                "itl_ms": _figures(summary.inter_chunk_latency, ITL, finished),
                "e2e_from_sent_ms": _figures(summary.request_latency, E2E, finished),
            }
        ),
        rates=rates_of(
            RATES,
            {
                "requests_per_s": _value(summary.request_throughput),
                "output_tokens_per_s": _value(summary.output_token_throughput),
                "goodput_rps": _value(summary.goodput),
            },
        ),
        notes=("The benchmark was cancelled before its end.",) if summary.was_cancelled else (),
    )


def _figures(summary: TimeSummary | None, definition: str, finished: int | None) -> TimeFigures | None:
    if summary is None:
        return None
    return TimeFigures.from_summary(
        definition,
        n=summary.count if summary.count is not None else finished,
        mean=summary.milliseconds(summary.avg),
        percentiles={name: summary.milliseconds(getattr(summary, name)) for name in ("p50", "p95", "p99")},
    )


def _failed(summary: _Summary) -> int | None:
    """Absent counts mean no error where the list of errors is there and empty."""
    if summary.error_request_count is not None:
        return _whole(summary.error_request_count)
    return None if summary.error_summary is None else sum(error.count for error in summary.error_summary)


def _value(scalar: _Scalar | None) -> float | None:
    return scalar.avg if scalar else None


def _whole(scalar: _Scalar | None) -> int | None:
    return round(scalar.avg) if scalar and scalar.avg is not None else None


AIPERF_SUMMARY = ResultFormat("aiperf", "summary of aiperf, JSON", _FILE_NAMES, _recognises, _read)
