"""What the servers tell of themselves: before, during and after the turns of each arm."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, count, in_unit
from quantgate.report.run_view import RunView, texts
from quantgate.server_metrics.metric import OTHER
from quantgate.server_metrics.summary import MetricSummary, summarise


@dataclass(frozen=True)
class ServerMetricsSection:
    """`unnamed`: arms whose servers export names that we have no table for."""

    table: Table | None
    unnamed: list[str]


def server_metrics_section(view: RunView) -> ServerMetricsSection | None:
    """None where no server was asked."""
    stored = view.run.server_metrics
    if not stored.num_rows:
        return None
    by_metric: dict[str, list[list[str]]] = {}
    for arm in view.arms:
        for summary in summarise(stored, arm.arm_id):
            row = [summary.metric.meaning, arm.arm_id, *_moments(summary), _whole_replay(summary)]
            by_metric.setdefault(summary.metric.name, []).append(row)
    rows = [row for arms in by_metric.values() for row in arms]
    headers = ["server's figure", "arm", "before", "during, mean", "during, most", "after", "over all its turns"]
    of_others = {
        arm for arm, metric in zip(texts(stored, "arm_id"), texts(stored, "metric"), strict=True) if metric == OTHER
    }
    return ServerMetricsSection(
        table=Table(headers, rows) if rows else None,
        unnamed=[arm.arm_id for arm in view.arms if arm.arm_id in of_others],
    )


def _moments(summary: MetricSummary) -> list[str]:
    moments = (summary.before, summary.during_mean, summary.during_max, summary.after)
    return [_written(value, summary.metric.unit) for value in moments]


def _whole_replay(summary: MetricSummary) -> str:
    if summary.mean is not None:
        return f"{_written(summary.mean, summary.metric.unit)} on average over {count(summary.count or 0)}"
    return _written(summary.grown, summary.metric.unit)


def _written(value: float | None, unit: str) -> str:
    if value is None:
        return NOTHING
    return count(round(value)) if unit == "count" else in_unit(value, unit)
