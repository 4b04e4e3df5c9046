"""What `quantgate trace inspect` prints: a figure a line, with what it says."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quantgate.traces.inspection import Inspection
from quantgate.traces.shape.clock import ClockTicks
from quantgate.traces.shape.length_counts import LengthPercentiles
from quantgate.traces.traffic_shape import TrafficShape
from quantgate.traces.transform_record import TransformRecord
from quantgate_engine.counted import counted

_UNTOLD = "not told by these rows"


def print_inspection(inspection: Inspection, console: Console) -> None:
    table = Table(title=Text(f"{inspection.trace} ({inspection.format})"), title_justify="left", show_header=False)
    table.add_column("figure")
    table.add_column("value", overflow="fold")
    for name, value in _lines(inspection):
        table.add_row(name, Text(value))
    console.print(table)


def _lines(inspection: Inspection) -> Iterator[tuple[str, str]]:
    shape = inspection.shape
    yield "rows", f"{shape.rows:,} in {shape.span_s:,.0f} s"
    yield "rate", "none: all at one moment" if shape.rate_rps is None else f"{shape.rate_rps:,.2f} requests/s"
    yield "gaps between requests, CV", _UNTOLD if shape.iat_cv is None else f"{shape.iat_cv:.2f} (Poisson: 1)"
    for counts in shape.counts:
        if counts.variance_to_mean is not None:
            yield (
                f"counts in windows of {counts.window_s} s",
                f"variance/mean {counts.variance_to_mean:.2f} (Poisson: 1), peak/mean {counts.peak_to_mean:.1f}, "
                f"{counts.windows:,} windows",
            )
    yield "clock", _clock(shape.clock)
    yield from _lengths(shape)
    if inspection.sessions is not None:
        sessions = inspection.sessions
        yield (
            "sessions",
            f"{sessions.sessions:,} of {counted(sessions.turns, 'turn')}, {sessions.most_turns:,} at most in one",
        )
    if inspection.prefix_sharing is not None:
        sharing = inspection.prefix_sharing
        yield (
            "prompts' blocks",
            f"{sharing.blocks:,}, of which {sharing.shared_share:.1%} follow a start that an earlier prompt had too",
        )
    for kind, count in inspection.left_out.items():
        yield f"left out: {kind.replace('_', ' ')}", counted(count, "row")
    for step in inspection.steps:
        yield f"step: {step.name}", step_words(step)


def _clock(clock: ClockTicks | None) -> str:
    if clock is None:
        return "no ticks above 1 ms"
    jitter = f", give or take {clock.jitter_s * 1000:,.1f} ms" if clock.jitter_s else ""
    return (
        f"ticks every {clock.step_s:.3f} s{jitter}: {counted(clock.ticks, 'tick')}, {clock.rows_per_tick:.1f} rows a "
        f"tick, {clock.most_rows_per_tick:,} at most"
    )


def _lengths(shape: TrafficShape) -> Iterator[tuple[str, str]]:
    unknown = f" ({counted(shape.rows_of_unknown_input, 'row')} not told)" if shape.rows_of_unknown_input else ""
    yield "input tokens", _percentiles(shape.input_tokens) + (unknown if shape.input_tokens else "")
    yield "output tokens", _percentiles(shape.output_tokens)
    if shape.input_to_output is not None:
        yield "input : output", f"{shape.input_to_output:,.1f} : 1"
    for name, per_s in (("input", shape.input_tokens_per_s), ("output", shape.output_tokens_per_s)):
        if per_s is not None:
            yield f"{name} tokens per second", f"{per_s:,.0f}"
    if shape.fits_context is not None:
        shares = (f"{tokens:,}: {share:.0%}" for tokens, share in shape.fits_context.items())
        yield "rows that fit a context of tokens", ", ".join(shares)


def _percentiles(lengths: LengthPercentiles | None) -> str:
    if lengths is None:
        return _UNTOLD
    return (
        f"p50 {lengths.p50:,.0f}, p90 {lengths.p90:,.0f}, p95 {lengths.p95:,.0f}, p99 {lengths.p99:,.0f}, "
        f"max {lengths.max:,}"
    )


def step_words(step: TransformRecord) -> str:
    """How many rows a step had and left, and its settings and counts, apart from empty ones."""
    told = ", ".join(f"{name}: {value}" for name, value in step.parameters.items() if value not in ({}, 0, None, ""))
    counts = f"{counted(step.rows_in, 'row')} in, {step.rows_out:,} out, {step.rows_touched:,} touched"
    return f"{counts}; {told}" if told else counts
