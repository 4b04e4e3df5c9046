"""Median and 95th percentile as a dumbbell: one group per slice of the traffic, one row per arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from quantgate.report.charts.frame import WIDTH, tick_label
from quantgate.report.charts.scale import log_scale
from quantgate.report.charts.series_style import marker, style_class
from quantgate.report.charts.svg import drawing, element

ROW, GROUP_HEAD = 15.0, 20.0
LEFT, RIGHT = 14.0, WIDTH - 14.0


@dataclass(frozen=True, slots=True)
class Range:
    """One arm in one slice; `p95` is None where the slice is too small to carry it. Infinity is drawn at the edge."""

    style: int
    p50: float
    p95: float | None


def range_chart(title: str, description: str, axis_name: str, groups: Sequence[tuple[str, Sequence[Range]]]) -> Markup:
    """`groups`: (name of the slice, one range per arm), values positive and in the unit that `axis_name` says."""
    values = np.array([v for _, rows in groups for r in rows for v in (r.p50, r.p95) if v is not None] or [1.0])
    scale = log_scale(np.maximum(values, 1e-3), LEFT, RIGHT)
    drawn, y = [], 4.0
    for name, rows in groups:
        drawn.append(element("text", name, x=LEFT, y=y + 12, class_="tick strong"))
        y += GROUP_HEAD
        for row in rows:
            drawn.append(element("line", x1=LEFT, x2=RIGHT, y1=y + 5, y2=y + 5, class_="grid"))
            at = scale.at(row.p50)
            if row.p95 is not None:
                end = scale.at(row.p95)
                drawn.append(
                    element("line", x1=at, x2=end, y1=y + 5, y2=y + 5, class_=f"line {style_class(row.style)}")
                )
                drawn.append(element("line", x1=end, x2=end, y1=y, y2=y + 10, class_=f"cap {style_class(row.style)}"))
            drawn.append(marker(at, y + 5, row.style))
            y += ROW
        y += 4
    drawn += [
        element("text", tick_label(tick), x=scale.at(tick), y=y + 12, class_="tick middle") for tick in scale.ticks(6)
    ]
    drawn.append(element("text", axis_name, x=WIDTH / 2, y=y + 30, class_="axis-name middle"))
    return drawing(WIDTH, y + 38, title, description, *drawn)
