"""The shape of traffic in a few numbers: rate, burstiness, lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quantgate.traces.record import TraceRecord


@dataclass(frozen=True, slots=True)
class LengthPercentiles:
    """Tokens per request; percentiles are linearly interpolated between order statistics."""

    p50: float
    p95: float
    p99: float
    max: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> LengthPercentiles:
        p50, p95, p99 = (float(value) for value in np.percentile(np.asarray(lengths), (50, 95, 99)))
        return cls(p50, p95, p99, max(lengths))


@dataclass(frozen=True, slots=True)
class TrafficShape:
    """What `trace inspect` prints.

    rows: requests. span_s: first to last scheduled arrival, seconds. rate_rps: (rows - 1) / span, requests per second;
    None for a span of 0. iat_cv: standard deviation over mean of the gaps between arrivals (1 for a Poisson process);
    None below two gaps or for a span of 0. input_tokens: None where some row's length is not known.
    """

    rows: int
    span_s: float
    rate_rps: float | None
    iat_cv: float | None
    input_tokens: LengthPercentiles | None
    output_tokens: LengthPercentiles

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def describe(
    records: Sequence[TraceRecord], count_prompt_tokens: Callable[[TraceRecord], int] | None = None
) -> TrafficShape:
    """The shape of recorded traffic.

    count_prompt_tokens: tokens of a record that has text (such as `PromptEncoder(tokenizer).count`); without it the
    input lengths are given only where every record carries its count or ids. Raises ValueError for no records.
    """
    count = count_prompt_tokens or known_prompt_tokens
    inputs = [count(record) for record in records]
    known_inputs = [length for length in inputs if length is not None]
    return shape_of(
        [record.scheduled_ns for record in records],
        known_inputs if len(known_inputs) == len(inputs) else None,
        [record.max_tokens for record in records],
    )


def known_prompt_tokens(record: TraceRecord) -> int | None:
    """The prompt's length where the record itself tells it, without a tokenizer."""
    return len(record.prompt_token_ids) if record.prompt_token_ids is not None else record.prompt_token_count


def shape_of(
    scheduled_ns: Sequence[int], input_tokens: Sequence[int] | None, output_tokens: Sequence[int]
) -> TrafficShape:
    """The shape of parallel columns, one entry a request; times in nanoseconds. Raises ValueError for no requests."""
    if not scheduled_ns:
        raise ValueError("traffic without requests has no shape")
    arrivals_s = np.sort(np.asarray(scheduled_ns, dtype=np.int64)) / 1e9
    gaps_s = np.diff(arrivals_s)
    span_s = float(arrivals_s[-1] - arrivals_s[0])
    return TrafficShape(
        rows=len(scheduled_ns),
        span_s=span_s,
        rate_rps=len(gaps_s) / span_s if span_s > 0 else None,
        iat_cv=float(np.std(gaps_s) / np.mean(gaps_s)) if len(gaps_s) >= 2 and span_s > 0 else None,
        input_tokens=None if input_tokens is None else LengthPercentiles.of(input_tokens),
        output_tokens=LengthPercentiles.of(output_tokens),
    )
