"""An arm's server metrics over a whole replay, as few numbers as a reader wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from quantgate.server_metrics.metric import SERVER_METRICS, ServerMetric


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric of one arm, in the metric's unit.

    For gauges, before, after: mean over the cells' scrapes at that moment; during_mean, during_max: over the scrapes in
    between. grown: growth over all cells (counters). mean: sum / count of the values that
    came in over all cells, and `count` of them (histograms).
    """

    metric: ServerMetric
    before: float | None = None
    during_mean: float | None = None
    during_max: float | None = None
    after: float | None = None
    grown: float | None = None
    mean: float | None = None
    count: int | None = None


def summarise(table: pa.Table, arm_id: str) -> list[MetricSummary]:
    """`table` is the run's `server_metrics`; metrics in the order of the catalogue, without those of other names."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in table.to_pylist():
        if row["arm_id"] == arm_id:
            rows.setdefault(row["metric"], []).append(row)
    summaries = (_SUMMARIES[metric.kind](metric, rows) for metric in SERVER_METRICS.values())
    return [summary for summary in summaries if summary is not None]


Rows = Mapping[str, list[Mapping[str, Any]]]

_ACROSS: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max}


def _gauge(metric: ServerMetric, rows: Rows) -> MetricSummary | None:
    if metric.name not in rows:
        return None
    of_scrape: dict[tuple[str, int], list[float]] = {}
    for row in rows[metric.name]:
        of_scrape.setdefault((row["phase"], row["time_ns"]), []).append(row["value"])
    values: dict[str, list[float]] = {}
    for (phase, _), parts in of_scrape.items():
        values.setdefault(phase, []).append(_ACROSS[metric.across](parts))
    during = values.get("during", [])
    return MetricSummary(
        metric,
        before=_mean(values.get("before", [])),
        during_mean=_mean(during),
        during_max=max(during, default=None),
        after=_mean(values.get("after", [])),
    )


def _counter(metric: ServerMetric, rows: Rows) -> MetricSummary | None:
    return MetricSummary(metric, grown=_sum(rows[metric.name])) if metric.name in rows else None


def _histogram(metric: ServerMetric, rows: Rows) -> MetricSummary | None:
    count = _sum(rows.get(f"{metric.name}_count", []))
    if count <= 0:
        return None
    return MetricSummary(metric, mean=_sum(rows.get(f"{metric.name}_sum", [])) / count, count=round(count))


_SUMMARIES = {"gauge": _gauge, "counter": _counter, "histogram": _histogram}


def _sum(rows: Iterable[Mapping[str, Any]]) -> float:
    return float(sum(row["value"] for row in rows))


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
