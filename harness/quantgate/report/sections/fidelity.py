"""The fidelity certificate: was the load that the traffic asked for really delivered to every arm?"""

from __future__ import annotations

import json
from dataclasses import dataclass

from quantgate.report.charts.counts import counts_chart
from quantgate.report.charts.series_style import area_swatch
from quantgate.report.figures import Figure, LegendEntry, Table
from quantgate.report.numbers import NOTHING, count, milliseconds, percent
from quantgate.report.run_view import RunView
from quantgate.report.shared_prompts import sharing_table
from quantgate.store.manifest import FidelityCertificate, FidelityWindow


@dataclass(frozen=True)
class FidelitySection:
    summary: Table
    windows: Table
    charts: list[Figure]
    sharing: Table | None
    transforms: Table | None
    reasons: list[str]


def fidelity_section(view: RunView) -> FidelitySection | None:
    certificates = view.run.manifest.fidelity
    if not certificates:
        return None
    return FidelitySection(
        summary=Table(
            ["arm", "valid", "intended", "delivered", "lag p50", "lag p95", "lag p99", "lag max", "driver's CPU share"],
            [_summary_row(certificate) for certificate in certificates],
        ),
        windows=Table(
            ["arm", "window", "windows", "largest difference of a window"],
            [
                [c.arm_id, f"{w.window_seconds} s", count(len(w.intended)), count(w.max_difference)]
                for c in certificates
                for w in c.windows
            ],
        ),
        charts=[_chart(certificate, certificate.windows[0]) for certificate in certificates if certificate.windows],
        sharing=sharing_table(certificates),
        transforms=_transforms(view),
        reasons=[f"{c.arm_id}: {reason}" for c in certificates for reason in c.reasons],
    )


def _summary_row(c: FidelityCertificate) -> list[str]:
    lags = [milliseconds(lag) for lag in (c.lag_ms_p50, c.lag_ms_p95, c.lag_ms_p99, c.lag_ms_max)]
    share = NOTHING if c.driver_cpu_share is None else percent(c.driver_cpu_share)
    validity = "✓ valid" if c.valid else "✕ not valid"
    return [c.arm_id, validity, count(c.requests_intended), count(c.requests_delivered), *lags, share]


def _chart(certificate: FidelityCertificate, window: FidelityWindow) -> Figure:
    title = f"Load of {certificate.arm_id}, intended and delivered"
    legend = [LegendEntry("intended", area_swatch("intended")), LegendEntry("delivered", area_swatch("delivered-key"))]
    return Figure(
        title,
        "The bars are what the traffic asked for; the line is what was sent. They should lie on each other.",
        counts_chart(title, window.window_seconds, window.intended, window.delivered),
        legend,
    )


def _transforms(view: RunView) -> Table | None:
    workload = view.run.manifest.workload
    if workload is None or not workload.transforms:
        return None
    rows = []
    for transform in workload.transforms:
        entries = dict(transform)
        name = str(entries.pop("name", "transform"))
        numbers = [int(entries.pop(key, 0)) for key in ("rows_in", "rows_out", "rows_touched")]
        parameters = entries.pop("parameters", entries)
        share = percent(numbers[2] / numbers[0]) if numbers[0] else percent(0.0)
        rows.append([name, json.dumps(parameters), *map(count, numbers), share])
    return Table(["transform", "parameters", "rows in", "rows out", "rows touched", "share touched"], rows)
