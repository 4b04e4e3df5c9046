"""Where the time went: of a request (waiting, prefill, decode), and of the engine (what its steps were made of)."""

from __future__ import annotations

import numpy as np

from quantgate.metrics.columns import NS_PER_S, floats, is_equal
from quantgate.metrics.registry import request_metric
from quantgate.metrics.serving_seconds import serving_seconds
from quantgate.report.charts.stacked_bars import stacked_bars
from quantgate.report.figures import Figure, Table
from quantgate.report.legends import part_legend
from quantgate.report.numbers import count, milliseconds, percent
from quantgate.report.run_view import ArmView, RunView
from quantgate.report.unanswered_requests import any_unanswered

_REQUEST_PARTS = {
    "queue (waiting)": "queue_time_ms",
    "prefill (executing)": "prefill_latency_ms",
    "decode (executing)": "decode_latency_ms",
}
_STEP_PARTS = ("prefill only", "prefill and decode together", "decode only", "idle")


def time_split_section(view: RunView) -> list[Figure]:
    figures = []
    if any(arm.values("queue_time_ms").size for arm in view.arms):
        figures.append(_requests(view))
    if view.run.steps.num_rows:
        figures.append(_engine(view))
    return figures


def _requests(view: RunView) -> Figure:
    bars = [(arm.arm_id, [_mean(arm, metric) for metric in _REQUEST_PARTS.values()]) for arm in view.arms]
    title = "A request's time, on average"
    chart = stacked_bars(title, "Mean milliseconds per request by phase.", bars, "milliseconds per request, mean")
    rows = [
        [arm.arm_id, f"{count(arm.finished)} of {count(arm.requests.num_rows)}", *map(milliseconds, parts),
         milliseconds(sum(parts))]
        for arm, (_, parts) in zip(view.arms, bars, strict=True)
    ]  # fmt: skip
    return Figure(
        title,
        "Waiting for the scheduler, computing the prompt, and producing the rest of the answer, by the engine's clock."
        + (
            f" Unanswered requests have no such time and are left out: {_finished(view)}."
            if any_unanswered(view)
            else ""
        ),
        chart,
        part_legend(list(_REQUEST_PARTS)),
        Table(["arm", "requests finished", *_REQUEST_PARTS, "together"], rows),
    )


def _finished(view: RunView) -> str:
    counts = (f"{arm.arm_id} finished {count(arm.finished)} of {count(arm.requests.num_rows)}" for arm in view.arms)
    return ", ".join(counts)


def _mean(arm: ArmView, metric: str) -> float:
    """Of finished requests alone, so that all parts of a bar are of the same ones."""
    values = request_metric(metric)(arm.requests)[is_equal(arm.requests, "status", "finished")]
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else 0.0


def _engine(view: RunView) -> Figure:
    bars = [(arm.arm_id, _step_seconds(arm)) for arm in view.arms]
    title = "The engine's time"
    rows = [
        [arm_id, *(f"{part:,.2f} s ({percent(part / sum(parts)) if sum(parts) else percent(0.0)})" for part in parts)]
        for arm_id, parts in bars
    ]
    return Figure(
        title,
        "How long the engine ran steps of each kind while this arm was served, and how long it had nothing to do.",
        stacked_bars(title, "Seconds of serving by kind of step.", bars, "seconds of serving"),
        part_legend(_STEP_PARTS),
        Table(["arm", *_STEP_PARTS], rows),
    )


def _step_seconds(arm: ArmView) -> list[float]:
    durations = floats(arm.steps, "duration_ns") / NS_PER_S
    prefill, decode = floats(arm.steps, "prefill_tokens") > 0, floats(arm.steps, "decode_tokens") > 0
    working = [float(np.sum(durations[mask])) for mask in (prefill & ~decode, prefill & decode, ~prefill & decode)]
    idle = max(0.0, serving_seconds(arm.requests) - sum(working))
    return [*working, idle]
