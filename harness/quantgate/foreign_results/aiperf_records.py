"""Records of aiperf (`profile_export.jsonl`): one request a line.

Source of names: ai-dynamo/aiperf, `docs/tutorials/working-with-profile-exports.md`, and the formulas in
`metrics/types`. Warm-up requests are left out, as in aiperf's own summary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quantgate.foreign_results.aiperf_units import E2E, ITL, RATES, TPOT, TTFT, TimeValue
from quantgate.foreign_results.documents import Document
from quantgate.foreign_results.measured_result import (
    Floats,
    MeasuredResult,
    RateFigure,
    TimeFigures,
    present,
    rates_of,
)
from quantgate.foreign_results.result_format import ForeignModel, Measured, ResultFormat, label_of, validated
from quantgate_engine.errors import ConfigurationError

_MEASURED_PHASE = "profiling"
_NS_PER_S = 1e9
_FILE_NAMES = ("profile_export.jsonl",)


class _Count(ForeignModel):
    value: Measured


class _Metrics(ForeignModel):
    time_to_first_token: TimeValue[Measured] | None = None
    inter_token_latency: TimeValue[Measured] | None = None
    inter_chunk_latency: TimeValue[list[Measured]] | None = None
    request_latency: TimeValue[Measured] | None = None
    output_sequence_length: _Count | None = None
    good_request_count: _Count | None = None


class _Metadata(ForeignModel):
    request_start_ns: int
    request_end_ns: int
    benchmark_phase: str = _MEASURED_PHASE
    was_cancelled: bool = False


class _Record(ForeignModel):
    metadata: _Metadata
    metrics: _Metrics = _Metrics()
    error: dict[str, Any] | None = None


def _recognises(first: dict[str, Any]) -> bool:
    metadata = first.get("metadata")
    return isinstance(metadata, dict) and "request_start_ns" in metadata


def _read(documents: Sequence[Document], path: Path) -> list[MeasuredResult]:
    records = [validated(document, _Record) for document in documents]
    measured = [record for record in records if record.metadata.benchmark_phase == _MEASURED_PHASE]
    if not measured:
        raise ConfigurationError(
            f"{path}: no record is of the phase {_MEASURED_PHASE} ({len(records)} of the warm-up); run the "
            "benchmark again."
        )
    cancelled = [record for record in measured if record.metadata.was_cancelled]
    valid = [record for record in measured if record.error is None and not record.metadata.was_cancelled]
    seconds = _span_seconds(valid)
    return [
        MeasuredResult(
            label=label_of(path, _FILE_NAMES),
            tool="aiperf",
            source=str(path),
            model=None,
            finished=len(valid),
            failed=len(measured) - len(valid) - len(cancelled),
            seconds=seconds,
            times=_times([record.metrics for record in valid]),
            rates=_rates([record.metrics for record in valid], seconds),
            notes=(f"Cancelled requests, which stand in no figure: {len(cancelled)}.",) if cancelled else (),
        )
    ]


def _span_seconds(valid: Sequence[_Record]) -> float | None:
    if not valid:
        return None
    start = min(record.metadata.request_start_ns for record in valid)
    end = max(record.metadata.request_end_ns for record in valid)
    return (end - start) / _NS_PER_S


def _times(metrics: Sequence[_Metrics]) -> dict[str, TimeFigures]:
    gaps = [
        gap * own.inter_chunk_latency.to_milliseconds
        for own in metrics
        if own.inter_chunk_latency
        for gap in own.inter_chunk_latency.value
    ]
    return present(
        {
            "ttft_from_sent_ms": TimeFigures.from_values(_of(metrics, lambda own: own.time_to_first_token), TTFT),
            "tpot_ms": TimeFigures.from_values(_of(metrics, lambda own: own.inter_token_latency), TPOT),
            "itl_ms": TimeFigures.from_values(np.array(gaps, dtype=np.float64), ITL, independent=False),
            "e2e_from_sent_ms": TimeFigures.from_values(_of(metrics, lambda own: own.request_latency), E2E),
        }
    )


def _of(metrics: Sequence[_Metrics], read: Callable[[_Metrics], TimeValue[float] | None]) -> Floats:
    found = [read(own) for own in metrics]
    return np.array([np.nan if time is None else time.value * time.to_milliseconds for time in found], dtype=np.float64)


def _rates(metrics: Sequence[_Metrics], seconds: float | None) -> dict[str, RateFigure]:
    if not seconds:
        return {}
    judged = [own.good_request_count.value for own in metrics if own.good_request_count]
    tokens = [own.output_sequence_length.value for own in metrics if own.output_sequence_length]
    return rates_of(
        RATES,
        {
            "requests_per_s": len(metrics) / seconds,
            "output_tokens_per_s": sum(tokens) / seconds if tokens else None,
            "goodput_rps": sum(judged) / seconds if judged else None,
        },
    )


AIPERF_RECORDS = ResultFormat("aiperf-records", "records of aiperf, JSON Lines", _FILE_NAMES, _recognises, _read)
