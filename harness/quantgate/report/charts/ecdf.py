"""Empirical distribution functions: the share of requests at or below each value, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from quantgate.report.charts.frame import BOTTOM, LEFT, RIGHT, TOP, Axis
from quantgate.report.charts.lines import Line, line_chart
from quantgate.report.charts.scale import Scale, log_scale

POINTS = 120


def ecdf_chart(title: str, axis_name: str, samples: Sequence[tuple[str, int, np.ndarray]]) -> Markup:
    """One line per (label, style, values [n]); at most `POINTS` quantiles each, so the size does not grow with n.

    An infinite value counts and is not reached: its line ends below 100 %.
    """
    lines = [Line(label, style, *_quantiles(values)) for label, style, values in samples if np.isfinite(values).any()]
    pooled = np.concatenate([line.x for line in lines]) if lines else np.array([1.0])
    x = Axis(log_scale(pooled, LEFT, RIGHT), axis_name)
    y = Axis(Scale(0.0, 1.0, BOTTOM, TOP), "share of requests", percent=True)
    return line_chart(title, "Share of requests at or below each value, one line per arm.", lines, x, y)


def _quantiles(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # A logarithmic axis has no zero; a microsecond is below what any clock here resolves.
    ordered = np.maximum(np.sort(values[np.isfinite(values)]), 1e-3)
    reached = len(ordered)
    ranks = np.unique(np.linspace(0, reached - 1, min(reached, POINTS)).round().astype(int))
    return ordered[ranks], (ranks + 1) / len(values)
