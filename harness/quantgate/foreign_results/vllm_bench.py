"""Results of `vllm bench serve` (`--save-result`, with or without `--save-detailed`, also several in one file).

Source of names and formulas: vllm-project/vllm, `vllm/benchmarks/serve.py` (`calculate_metrics`, `benchmark`). Single
values are in seconds, summaries in milliseconds. A request that failed keeps its place in the detailed lists, with
times of 0. The key of goodput had a colon at its end for some releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import AliasChoices, Field

from quantgate.foreign_results.documents import Document
from quantgate.foreign_results.measured_result import Floats, MeasuredResult, TimeFigures, present, rates_of
from quantgate.foreign_results.result_format import Count, ForeignModel, Measured, ResultFormat, validated
from quantgate_engine.counted import counted, plural
from quantgate_engine.errors import ConfigurationError

_DEFINITIONS = {
    "ttft_from_sent_ms": "first chunk - sending",
    "tpot_ms": "(end - first chunk) / (output tokens - 1), per request",
    "itl_ms": "gaps between chunks, pooled over requests",
    "e2e_from_sent_ms": "last chunk - sending",
}
_NAMES = {"ttft_from_sent_ms": "ttft", "tpot_ms": "tpot", "itl_ms": "itl", "e2e_from_sent_ms": "e2el"}
_RATES = {
    "requests_per_s": "completed requests / duration",
    "output_tokens_per_s": "output tokens of completed requests / duration",
    "goodput_rps": "completed requests within the limits of --goodput / duration",
}
_ALWAYS_THERE = {"completed", "duration", "request_throughput", "total_token_throughput"}
_NO_LIMIT = "inf"


class _Result(ForeignModel):
    completed: Count
    duration: Measured
    request_throughput: Measured
    output_throughput: Measured | None = None
    request_goodput: Measured | None = Field(None, validation_alias=AliasChoices("request_goodput", "request_goodput:"))
    failed: Count | None = None
    num_prompts: Count | None = None
    model_id: str | None = None
    request_rate: float | str | None = None
    max_concurrency: Count | None = None
    output_lens: list[Count] | None = None
    ttfts: list[Measured] | None = None
    itls: list[list[Measured]] | None = None
    latencies: list[Measured] | None = None
    errors: list[str] | None = None


def _recognises(first: dict[str, Any]) -> bool:
    return first.keys() >= _ALWAYS_THERE


def _read(documents: Sequence[Document], path: Path) -> list[MeasuredResult]:
    numbered = len(documents) > 1
    return [
        _result(document, f"{path.stem} {index}" if numbered else path.stem, path)
        for index, document in enumerate(documents, start=1)
    ]


def _result(document: Document, label: str, path: Path) -> MeasuredResult:
    result = validated(document, _Result)
    failed = result.failed
    if failed is None and result.num_prompts is not None:
        failed = result.num_prompts - result.completed
    return MeasuredResult(
        label=label,
        tool="vllm",
        source=str(path),
        model=result.model_id,
        finished=result.completed,
        failed=failed,
        seconds=result.duration,
        times=_from_single_requests(result, document.place) or _from_summaries(result, document),
        rates=rates_of(
            _RATES,
            {
                "requests_per_s": result.request_throughput,
                "output_tokens_per_s": result.output_throughput,
                "goodput_rps": result.request_goodput,
            },
        ),
        notes=_notes(result),
    )


def _from_single_requests(result: _Result, place: str) -> dict[str, TimeFigures]:
    """Empty where the file holds no detailed lists."""
    if result.ttfts is None or result.itls is None or result.output_lens is None:
        return {}
    count = len(result.ttfts)
    for name in ("itls", "output_lens", "latencies", "errors"):
        entries = getattr(result, name)
        if entries is not None and len(entries) != count:
            raise ConfigurationError(
                f"{place}, field {name}: expected {counted(count, 'entry', 'entries')}, as many as ttfts has, got "
                f"{len(entries)}; the file is damaged, save it again."
            )
    lengths = np.array(result.output_lens, dtype=np.int64)
    answered = np.array([not error for error in result.errors], dtype=bool) if result.errors else lengths > 0
    first = np.array(result.ttfts, dtype=np.float64)
    ends = result.latencies or [start + sum(gaps) for start, gaps in zip(result.ttfts, result.itls, strict=True)]
    end = np.array(ends, dtype=np.float64)
    gaps = [gap for kept, own in zip(answered, result.itls, strict=True) if kept for gap in own]
    values: dict[str, Floats] = {
        "ttft_from_sent_ms": first[answered],
        "tpot_ms": ((end - first) / np.where(lengths > 1, lengths - 1, np.nan))[answered],
        "itl_ms": np.array(gaps, dtype=np.float64),
        "e2e_from_sent_ms": end[answered],
    }
    return present(
        {
            name: TimeFigures.from_values(seconds * 1000, _DEFINITIONS[name], independent=name != "itl_ms")
            for name, seconds in values.items()
        }
    )


def _from_summaries(result: _Result, document: Document) -> dict[str, TimeFigures]:
    def number(key: str) -> float | None:
        value = document.content.get(key)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
            return value
        raise ConfigurationError(f"{document.place}, field {key}: expected a time of at least 0 ms, got {value!r}.")

    return present(
        {
            name: TimeFigures.from_summary(
                _DEFINITIONS[name],
                n=result.completed,
                mean=number(f"mean_{theirs}_ms"),
                percentiles={
                    "p50": number(f"median_{theirs}_ms"),
                    "p95": number(f"p95_{theirs}_ms"),
                    "p99": number(f"p99_{theirs}_ms"),
                },
            )
            for name, theirs in _NAMES.items()
        }
    )


def _notes(result: _Result) -> tuple[str, ...]:
    if result.max_concurrency is None or result.request_rate in (None, _NO_LIMIT):
        return ()
    return (
        f"At most {counted(result.max_concurrency, 'request')} "
        f"{plural(result.max_concurrency, 'was', 'were')} open at once; the wait for a free place is in none of these "
        "times.",
    )


VLLM_BENCH = ResultFormat("vllm", "result of vllm bench serve, JSON", (), _recognises, _read)
