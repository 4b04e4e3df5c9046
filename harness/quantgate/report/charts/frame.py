"""The box that charts with two axes share: grid, tick labels, axis names."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from quantgate.report.charts.scale import Scale
from quantgate.report.charts.svg import element

WIDTH, HEIGHT = 440.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 428.0, 12.0, 202.0


@dataclass(frozen=True, slots=True)
class Axis:
    """`name` stands beside the axis with its unit; `percent` writes the ticks as percentages of 1."""

    scale: Scale
    name: str
    percent: bool = False


def frame(x: Axis, y: Axis) -> Markup:
    """Grid and labels of a chart of `WIDTH` by `HEIGHT` whose plot lies within LEFT, RIGHT, TOP, BOTTOM."""
    parts = []
    for tick in y.scale.ticks(4):
        at = y.scale.at(tick)
        parts.append(element("line", x1=LEFT, x2=RIGHT, y1=at, y2=at, class_="grid"))
        parts.append(element("text", tick_label(tick, percent=y.percent), x=LEFT - 6, y=at + 4, class_="tick end"))
    for tick in x.scale.ticks(6):
        at = x.scale.at(tick)
        parts.append(element("line", x1=at, x2=at, y1=BOTTOM, y2=BOTTOM + 4, class_="axis"))
        parts.append(element("text", tick_label(tick, percent=x.percent), x=at, y=BOTTOM + 16, class_="tick middle"))
    parts.append(element("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, class_="axis"))
    parts.append(element("text", x.name, x=(LEFT + RIGHT) / 2, y=HEIGHT - 6, class_="axis-name middle"))
    middle = (TOP + BOTTOM) / 2
    parts.append(
        element("text", y.name, x=12.0, y=middle, class_="axis-name middle", transform=f"rotate(-90 12 {middle:.0f})")
    )
    return element("g", *parts)


def tick_label(value: float, *, percent: bool = False) -> str:
    """A round number, short enough for the room beside an axis."""
    if percent:
        return f"{value * 100:g} %"
    return f"{value / 1000:,.10g}k" if abs(value) >= 10_000 else f"{value:,.10g}"
