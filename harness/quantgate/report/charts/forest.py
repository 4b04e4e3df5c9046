"""One row of a forest plot: an estimate with its interval against the margin, and the A/A interval beneath it.

Losses of different units share one axis by division through their margin: 0 is "no loss", 1 is "the whole margin".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from quantgate.report.charts.scale import Scale
from quantgate.report.charts.svg import drawing, element

WIDTH, HEIGHT = 300.0, 44.0
LOW, HIGH = -2.0, 3.0
_SCALE = Scale(LOW, HIGH, 8.0, WIDTH - 8.0)
_ROW_Y, _AA_Y = 15.0, 31.0


@dataclass(frozen=True, slots=True)
class Whisker:
    """Estimate and limits in units of the margin; a limit of None is unbounded."""

    estimate: float | None
    low: float | None
    high: float | None


def forest_row(description: str, loss: Whisker, aa: Whisker | None, outcome: str, threshold_name: str) -> Markup:
    """`outcome` picks the marker's shape and colour; `threshold_name` says what the dashed line is."""
    zero, margin = _SCALE.at(0.0), _SCALE.at(1.0)
    parts = [
        element("rect", x=_SCALE.start, y=2.0, width=margin - _SCALE.start, height=HEIGHT - 4, class_="within"),
        element("line", x1=zero, x2=zero, y1=2.0, y2=HEIGHT - 2, class_="zero"),
        element("line", x1=margin, x2=margin, y1=2.0, y2=HEIGHT - 2, class_="margin"),
        _whisker(loss, _ROW_Y, f"loss outcome-{outcome}"),
    ]
    if aa is not None:
        parts.append(_whisker(aa, _AA_Y, "noise"))
    return drawing(WIDTH, HEIGHT, f"Against the {threshold_name}", description, *parts, class_="forest")


def _whisker(whisker: Whisker, y: float, class_: str) -> Markup:
    parts = []
    if whisker.low is not None or whisker.high is not None:
        low = LOW if whisker.low is None else whisker.low
        high = HIGH if whisker.high is None else whisker.high
        start, end = _SCALE.at(low), _SCALE.at(high)
        parts.append(element("line", x1=start, x2=end, y1=y, y2=y, class_="interval"))
        parts.append(_end(start, y, -1 if low <= LOW else 0))
        parts.append(_end(end, y, 1 if high >= HIGH else 0))
    if whisker.estimate is not None and math.isfinite(whisker.estimate):
        at = _SCALE.at(whisker.estimate)
        parts.append(element("rect", x=at - 4, y=y - 4, width=8.0, height=8.0, class_="estimate"))
    return element("g", *parts, class_=class_)


def _end(x: float, y: float, arrow: int) -> Markup:
    """A cap, or an arrow where the interval runs out of the picture."""
    if arrow:
        return element("path", d=f"M{x - 5 * arrow:.1f} {y - 4:.1f}L{x:.1f} {y:.1f}L{x - 5 * arrow:.1f} {y + 4:.1f}",
                       class_="interval")  # fmt: skip
    return element("line", x1=x, x2=x, y1=y - 4, y2=y + 4, class_="interval")
