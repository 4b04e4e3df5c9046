"""The shape of traffic in a few numbers: rate, burstiness, lengths, and whether its clock ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from quantgate.traces.record import TraceRecord
from quantgate.traces.shape.batch import MOST_ROWS, UNKNOWN_LENGTH, ArrivalBatch, Integers
from quantgate.traces.shape.clock import ClockTicks, ClockWatch
from quantgate.traces.shape.gaps import Gaps
from quantgate.traces.shape.length_counts import LengthCounts, LengthPercentiles
from quantgate.traces.shape.window_counts import CountSpread, WindowCounts

WINDOWS_S = (1, 10, 60)
CONTEXTS = (1024, 2048, 4096)


@dataclass(frozen=True, slots=True)
class TrafficShape:
    """What `trace inspect` prints; its fields are told in docs/commands/trace.md.

    rows: requests. span_s: first to last scheduled arrival, seconds. rate_rps: (rows - 1) / span, requests per second;
    None for a span of 0, as all that is told per second. iat_cv: standard deviation over mean of the gaps between
    arrivals (1 for a Poisson process); None below two gaps or for a span of 0. input_tokens: of the rows whose length
    is known, None where there are none; the ratio of input to output and the share of rows that fit a context are of
    the same rows.
    """

    rows: int
    span_s: float
    rate_rps: float | None
    iat_cv: float | None
    counts: tuple[CountSpread, ...]
    clock: ClockTicks | None
    input_tokens: LengthPercentiles | None
    rows_of_unknown_input: int
    output_tokens: LengthPercentiles
    input_to_output: float | None
    input_tokens_per_s: float | None
    output_tokens_per_s: float | None
    fits_context: dict[int, float] | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class ShapeTotals:
    """Adds up a trace of any length, batch by batch, in memory that does not grow with its rows."""

    def __init__(self) -> None:
        self._gaps = Gaps()
        self._windows = [WindowCounts(window_s) for window_s in WINDOWS_S]
        self._clock = ClockWatch()
        self._inputs = LengthCounts()
        self._outputs = LengthCounts()
        self._outputs_of_known = 0
        self._contexts = LengthCounts()

    @property
    def rows(self) -> int:
        return self._outputs.rows

    def add(self, batch: ArrivalBatch) -> None:
        """Rows in order of time, none before those that were added earlier."""
        for start in range(0, len(batch.scheduled_ns), MOST_ROWS):
            part = slice(start, start + MOST_ROWS)
            times_ns = batch.scheduled_ns[part]
            self._gaps.add(times_ns)
            self._clock.add(times_ns)
            for windows in self._windows:
                windows.add(times_ns)
            self._add_lengths(batch.input_tokens[part], batch.output_tokens[part])

    def _add_lengths(self, inputs: Integers, outputs: Integers) -> None:
        self._outputs.add(outputs)
        known = inputs != UNKNOWN_LENGTH
        if not known.all():
            inputs, outputs = inputs[known], outputs[known]
        self._inputs.add(inputs)
        self._outputs_of_known += int(outputs.sum())
        self._contexts.add(inputs + outputs)

    def shape(self) -> TrafficShape:
        """Raises ValueError where nothing was added."""
        output_tokens = self._outputs.percentiles()
        if output_tokens is None:
            raise ValueError("traffic without requests has no shape")
        span_s = self._gaps.span_ns / 1e9
        inputs = self._inputs.percentiles()
        return TrafficShape(
            rows=self.rows,
            span_s=span_s,
            rate_rps=(self.rows - 1) / span_s if span_s else None,
            iat_cv=self._gaps.variation(),
            counts=tuple(windows.spread() for windows in self._windows),
            clock=self._clock.ticks(),
            input_tokens=inputs,
            rows_of_unknown_input=self.rows - self._inputs.rows,
            output_tokens=output_tokens,
            input_to_output=self._inputs.tokens / self._outputs_of_known if self._outputs_of_known else None,
            input_tokens_per_s=self._inputs.tokens / span_s if span_s and self._inputs.rows == self.rows else None,
            output_tokens_per_s=self._outputs.tokens / span_s if span_s else None,
            fits_context={tokens: self._contexts.share_up_to(tokens) for tokens in CONTEXTS} if inputs else None,
        )


def describe(
    records: Sequence[TraceRecord], count_prompt_tokens: Callable[[TraceRecord], int] | None = None
) -> TrafficShape:
    """The shape of recorded traffic.

    count_prompt_tokens: tokens of a record that has text (such as `PromptEncoder(tokenizer).count`); without it the
    input lengths are those of the records that carry their count or ids. Raises ValueError for no records.
    """
    count = count_prompt_tokens or known_prompt_tokens
    return shape_of(
        [record.scheduled_ns for record in records],
        [count(record) for record in records],
        [record.max_tokens for record in records],
    )


def known_prompt_tokens(record: TraceRecord) -> int | None:
    """The prompt's length where the record itself tells it, without a tokenizer."""
    return len(record.prompt_token_ids) if record.prompt_token_ids is not None else record.prompt_token_count


def shape_of(
    scheduled_ns: Sequence[int], input_tokens: Sequence[int | None], output_tokens: Sequence[int]
) -> TrafficShape:
    """The shape of parallel columns, one entry a request; times in nanoseconds, in any order; None where a prompt's
    length is unknown. Raises ValueError for no requests.
    """
    totals = ShapeTotals()
    times_ns = np.asarray(scheduled_ns, dtype=np.int64)
    in_order = np.argsort(times_ns, kind="stable")
    inputs = [UNKNOWN_LENGTH if length is None else length for length in input_tokens]
    totals.add(
        ArrivalBatch(
            times_ns[in_order],
            np.asarray(inputs, dtype=np.int64)[in_order],
            np.asarray(output_tokens, dtype=np.int64)[in_order],
        )
    )
    return totals.shape()
