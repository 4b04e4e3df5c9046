"""The run over time: latency, batch sizes and KV use, with every arm on the clock of the replayed traffic.

Arms take turns on one machine. To compare them at the same moment of the traffic, the time within each of an arm's
cells (pass, block) counts from the cell's first request, and a block begins where the longest cell of the block before
it ended. Passes lie on each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import NS_PER_S, floats
from quantgate.metrics.endless_times import unanswered
from quantgate.metrics.pool_totals import over_pools
from quantgate.metrics.registry import request_metric
from quantgate.report.charts.frame import BOTTOM, LEFT, RIGHT, TOP, Axis
from quantgate.report.charts.lines import Line, line_chart
from quantgate.report.charts.scale import Scale, linear_scale
from quantgate.report.figures import Figure
from quantgate.report.legends import arm_legend
from quantgate.report.run_view import ArmView, RunView
from quantgate.report.unanswered_requests import any_unanswered

BINS = 48
_STATES = frozenset({"kv_cache_used_tokens", "waiting_requests"})
"""What a pool is in, rather than what its step did: totals over all pools are drawn."""
_UNANSWERED = "unanswered"


@dataclass(frozen=True)
class _TrafficClock:
    """`cell_starts`: (arm, pass, block) -> ns of the cell's first schedule; `block_offsets`: block -> seconds."""

    cell_starts: dict[tuple[str, int, int], float]
    block_offsets: dict[int, float]
    end: float

    def seconds(self, arm: ArmView, table: pa.Table, time_column: str) -> np.ndarray:
        """Traffic time of each row, seconds; NaN for rows of cells without requests."""
        passes, blocks = floats(table, "pass_index").astype(int), floats(table, "block_index").astype(int)
        times = floats(table, time_column)
        result = np.full(len(times), np.nan)
        for (arm_id, pass_index, block_index), start in self.cell_starts.items():
            if arm_id == arm.arm_id:
                rows = (passes == pass_index) & (blocks == block_index)
                result[rows] = self.block_offsets[block_index] + (times[rows] - start) / NS_PER_S
        return result


def timeline_section(view: RunView) -> list[Figure]:
    clock = _traffic_clock(view)
    if clock is None:
        return []
    left_out = (
        " Unanswered requests have no time and are left out; a chart of its own shows their share."
        if any_unanswered(view)
        else ""
    )
    figures = [
        _figure(view, clock, "TTFT over time", "Mean time to first token of the requests scheduled in each slice. "
                f"Hills are bursts that the engine could not serve at once.{left_out}", "milliseconds", "ttft_ms"),
        _figure(view, clock, "TPOT over time", "Mean time per output token of the requests scheduled in each "
                f"slice.{left_out}", "milliseconds", "tpot_ms"),
    ]  # fmt: skip
    if any_unanswered(view):
        figures.append(
            _figure(view, clock, "Unanswered requests over time", "Share of the requests scheduled in each slice that "
                    "got no answer.", "share of requests", _UNANSWERED)
        )  # fmt: skip
    if view.run.steps.num_rows:
        figures += [
            _figure(view, clock, "Requests decoding together", "Mean batch size of the decode part of the engine's "
                    "steps, weighted by their duration. A slower arm piles up more.", "requests", "batch_size_decode"),
            _figure(view, clock, "Prompts computed together", "Mean number of requests in the prefill part of a step, "
                    "weighted by the steps' duration.", "requests", "batch_size_prefill"),
            _figure(view, clock, "KV cache in use", "Token slots of the KV cache that hold a token.", "tokens",
                    "kv_cache_used_tokens"),
            _figure(view, clock, "Requests waiting", "Requests in the engine that have not been scheduled yet.",
                    "requests", "waiting_requests"),
        ]  # fmt: skip
    return figures


def _figure(view: RunView, clock: _TrafficClock, title: str, explanation: str, axis_name: str, measure: str) -> Figure:
    edges = np.linspace(0.0, clock.end, BINS + 1)
    centres = (edges[:-1] + edges[1:]) / 2
    lines = []
    for arm in view.arms:
        times, values, weights = _measured(clock, arm, measure)
        lines.append(Line(arm.arm_id, arm.style, centres, _binned(times, values, weights, edges)))
    x = Axis(Scale(0.0, clock.end, LEFT, RIGHT), "seconds of traffic")
    y = Axis(linear_scale(np.concatenate([line.y for line in lines]), BOTTOM, TOP), axis_name)
    return Figure(title, explanation, line_chart(title, explanation, lines, x, y), arm_legend(view.arms))


def _measured(clock: _TrafficClock, arm: ArmView, measure: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times, values, weights), from the step log where it has the column, else from the requests."""
    if measure in arm.steps.column_names:
        times, values = clock.seconds(arm, arm.steps, "started_ns"), floats(arm.steps, measure)
        values = over_pools(arm.steps, values) if measure in _STATES else values
        return times, values, floats(arm.steps, "duration_ns")
    values = unanswered(arm.requests).astype(float) if measure == _UNANSWERED else request_metric(measure)(arm.requests)
    return clock.seconds(arm, arm.requests, "scheduled_ns"), values, np.ones(len(values))


def _binned(times: np.ndarray, values: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Weighted mean per bin; NaN where a bin is empty."""
    usable = np.isfinite(times) & np.isfinite(values)
    totals, _ = np.histogram(times[usable], edges, weights=(values * weights)[usable])
    sums, _ = np.histogram(times[usable], edges, weights=weights[usable])
    means: np.ndarray = np.divide(totals, sums, out=np.full(len(sums), np.nan), where=sums > 0)
    return means


def _traffic_clock(view: RunView) -> _TrafficClock | None:
    if view.run.requests.num_rows == 0:
        return None
    cells = view.run.requests.group_by(["arm_id", "pass_index", "block_index"]).aggregate(
        [("scheduled_ns", "min"), ("ended_ns", "max")]
    )
    starts: dict[tuple[str, int, int], float] = {}
    longest: dict[int, float] = {}
    for row in cells.to_pylist():
        block, start = row["block_index"], row["scheduled_ns_min"]
        starts[row["arm_id"], row["pass_index"], block] = start
        longest[block] = max(longest.get(block, 0.0), (row["ended_ns_max"] - start) / NS_PER_S)
    offsets, reached = {}, 0.0
    for block in sorted(longest):
        offsets[block] = reached
        reached += longest[block]
    return _TrafficClock(starts, offsets, max(reached, 1e-3))
