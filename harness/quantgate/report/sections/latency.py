"""Latency: distributions of TTFT and TPOT, by prompt length and SLO class, and waiting apart from executing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import floats, is_equal
from quantgate.report.charts.ecdf import ecdf_chart
from quantgate.report.charts.ranges import Range, range_chart
from quantgate.report.estimates import percentile
from quantgate.report.figures import Figure, Table
from quantgate.report.legends import arm_legend
from quantgate.report.numbers import count, milliseconds, with_interval
from quantgate.report.run_view import ArmView, RunView, texts, times_of
from quantgate.report.unanswered_requests import any_unanswered, unanswered_requests

_BUCKET_EDGES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
_SMALLEST_BUCKET = 0.05
_PERCENTILES = (50, 90, 95, 99)
_UNANSWERED_IN_LINE = (
    " Unanswered requests count as infinitely slow: the line of an arm that has some ends below 100 %."
)
_UNANSWERED_IN_RANGE = " Unanswered requests count as infinitely slow: what stands at the right edge is one of them."


@dataclass(frozen=True)
class LatencySection:
    distributions: list[Figure]
    slices: list[Figure]


def latency_section(view: RunView) -> LatencySection | None:
    """None where no request got as far as a first token."""
    if not any(len(arm.values("ttft_ms")) for arm in view.arms):
        return None
    return LatencySection(
        distributions=[
            _distribution(view, "ttft_ms", "Time to first token (TTFT)",
                          "How long a client waits for the first token, counted from the moment at which the recorded "
                          "traffic wanted the request sent. A line further left is faster."),
            _distribution(view, "tpot_ms", "Time per output token (TPOT)",
                          "The mean gap between tokens of one answer, once it streams. A line further left is faster."),
            _distribution(view, "queue_time_ms", "Waiting: queue time",
                          "From arrival in the engine until the scheduler first ran the request. Nothing is computed "
                          "for it in this time."),
            _distribution(view, "prefill_latency_ms", "Executing: prefill latency",
                          "From the first scheduling to the first token: computing the prompt, beside whatever else "
                          "the engine was doing."),
        ],
        slices=[
            figure
            for metric, name in (("ttft_ms", "TTFT"), ("tpot_ms", "TPOT"))
            for figure in (
                _sliced(view, metric, f"{name} by prompt length", _length_buckets(view)),
                _sliced(view, metric, f"{name} by SLO class", _classes(view)),
            )
        ],
    )  # fmt: skip


def _distribution(view: RunView, metric: str, title: str, explanation: str) -> Figure:
    samples = [(arm.arm_id, arm.style, arm.times(metric)) for arm in view.arms]
    rows = [
        [
            arm.arm_id,
            count(len(times)),
            count(unanswered_requests(arm)),
            *(with_interval(percentile(times, p / 100), milliseconds) for p in _PERCENTILES),
        ]
        for arm, (_, _, times) in zip(view.arms, samples, strict=True)
    ]
    return Figure(
        title,
        explanation + (_UNANSWERED_IN_LINE if any_unanswered(view) else ""),
        ecdf_chart(title, "milliseconds (logarithmic)", samples),
        arm_legend(view.arms),
        Table(["arm", "requests", "unanswered", *(f"p{p}" for p in _PERCENTILES)], rows),
    )


Masks = Mapping[str, Mapping[str, np.ndarray]]
"""Slice name -> arm id -> mask over the arm's requests [n]."""


def _sliced(view: RunView, metric: str, title: str, masks: Masks) -> Figure:
    groups, rows = [], []
    for name, by_arm in masks.items():
        ranges = []
        for arm in view.arms:
            values = times_of(arm.requests.filter(pa.array(by_arm[arm.arm_id])), metric)
            middle, tail = percentile(values, 0.50), percentile(values, 0.95)
            rows.append([name, arm.arm_id, count(len(values)), with_interval(middle, milliseconds),
                         with_interval(tail, milliseconds)])  # fmt: skip
            if middle is not None:
                ranges.append(Range(arm.style, middle.value, tail.value if tail else None))
        groups.append((name, ranges))
    explanation = (
        "The marker is the median; the line runs to the 95th percentile where the slice holds enough requests for one. "
        f"Further left is faster.{_UNANSWERED_IN_RANGE if any_unanswered(view) else ''}"
    )
    chart = range_chart(title, explanation, "milliseconds (logarithmic)", groups)
    return Figure(title, explanation, chart, arm_legend(view.arms),
                  Table(["slice", "arm", "requests", "p50", "p95"], rows))  # fmt: skip


def _length_buckets(view: RunView) -> Masks:
    """Buckets by powers of two; a bucket with under a twentieth of the requests joins its longer neighbour."""
    lengths = floats(view.run.requests, "prompt_tokens")
    edges, lower = [], 0
    for upper in _BUCKET_EDGES:
        share = np.mean((lengths > lower) & (lengths <= upper)) if len(lengths) else 0.0
        if share >= _SMALLEST_BUCKET and np.mean(lengths > upper) >= _SMALLEST_BUCKET:
            edges.append(upper)
            lower = upper
    limits = [0, *edges, None]
    return {
        _bucket_name(low, high): {arm.arm_id: _within(arm, low, high) for arm in view.arms}
        for low, high in pairwise(limits)
        if low is not None
    }


def _bucket_name(low: int, high: int | None) -> str:
    if high is None:
        return f"prompts over {low:,} tokens" if low else "all prompts"
    return f"prompts of {low + 1:,} to {high:,} tokens"


def _within(arm: ArmView, low: int, high: int | None) -> np.ndarray:
    lengths = floats(arm.requests, "prompt_tokens")
    mask: np.ndarray = (lengths > low) & (lengths <= (np.inf if high is None else high))
    return mask


def _classes(view: RunView) -> Masks:
    names = sorted(set(texts(view.run.requests, "slo_class")))
    return {name: {arm.arm_id: is_equal(arm.requests, "slo_class", name) for arm in view.arms} for name in names}
