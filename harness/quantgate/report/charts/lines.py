"""Lines of several arms over one x axis, with a marker now and then: ECDFs and courses over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from quantgate.report.charts.frame import HEIGHT, WIDTH, Axis, frame
from quantgate.report.charts.series_style import marker, style_class
from quantgate.report.charts.svg import drawing, element, path_through

MARKERS_PER_LINE = 5


@dataclass(frozen=True, slots=True)
class Line:
    """One arm's line: x and y [n] in the units of the axes; NaN breaks it."""

    label: str
    style: int
    x: np.ndarray
    y: np.ndarray


def line_chart(title: str, description: str, lines: Sequence[Line], x: Axis, y: Axis) -> Markup:
    return drawing(WIDTH, HEIGHT, title, description, frame(x, y), *(_drawn(line, x, y) for line in lines))


def _drawn(line: Line, x: Axis, y: Axis) -> Markup:
    px, py = x.scale(line.x), y.scale(line.y)
    path = element("path", d=path_through(px, py), class_=f"line {style_class(line.style)}")
    # Each line carries its markers at other places, so that lines which lie on each other can still be told apart.
    drawn = np.flatnonzero(np.isfinite(line.y))
    shares = (np.arange(MARKERS_PER_LINE) + 0.3 + 0.13 * line.style) / MARKERS_PER_LINE
    places = np.unique(drawn[(len(drawn) * shares).astype(int) % len(drawn)]) if len(drawn) else drawn
    return element("g", element("title", line.label), path, *(marker(px[i], py[i], line.style) for i in places))
