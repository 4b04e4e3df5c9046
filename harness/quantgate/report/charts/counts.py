"""Intended against delivered counts per window: bars for what was intended, a stepped line for what came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from quantgate.report.charts.frame import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, frame
from quantgate.report.charts.scale import Scale, linear_scale
from quantgate.report.charts.svg import drawing, element, path_through

MOST_WINDOWS = 150


def counts_chart(title: str, window_seconds: int, intended: Sequence[int], delivered: Sequence[int]) -> Markup:
    """Neighbouring windows are summed where there are more than `MOST_WINDOWS`, so that long runs stay readable."""
    merged = max(1, -(-max(len(intended), len(delivered)) // MOST_WINDOWS))
    wanted, came = _summed(intended, merged), _summed(delivered, merged)
    width = float(window_seconds * merged)
    count = max(len(wanted), len(came), 1)
    x = Axis(Scale(0.0, count * width, LEFT, RIGHT), "seconds of load")
    y = Axis(linear_scale(np.concatenate([wanted, came, [1.0]]), BOTTOM, TOP), f"requests per {width:g} s")
    bars = []
    for index, value in enumerate(wanted):
        start, end, top = x.scale.at(index * width), x.scale.at((index + 1) * width), y.scale.at(float(value))
        bars.append(element("rect", x=start, y=top, width=max(end - start - 0.5, 0.5), height=BOTTOM - top,
                            class_="intended"))  # fmt: skip
    edges = np.repeat(np.arange(len(came) + 1) * width, 2)[1:-1]
    line = element("path", d=path_through(x.scale(edges), y.scale(np.repeat(came, 2))), class_="delivered")
    description = f"Requests per {width:g} seconds: bars intended, line delivered."
    return drawing(WIDTH, HEIGHT, title, description, frame(x, y), *bars, line)


def _summed(counts: Sequence[int], merged: int) -> np.ndarray:
    values = np.asarray(counts, dtype=np.float64)
    padded = np.pad(values, (0, -len(values) % merged))
    total: np.ndarray = padded.reshape(-1, merged).sum(axis=1)
    return total
