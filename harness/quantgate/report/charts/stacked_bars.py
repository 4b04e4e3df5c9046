"""Horizontal bars made of parts: one bar per arm, one pattern per part."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from quantgate.report.charts.frame import WIDTH, tick_label
from quantgate.report.charts.scale import Scale
from quantgate.report.charts.svg import drawing, element

BAR, GAP, LABEL_WIDTH = 20.0, 30.0, 92.0
PARTS = 4


def part_class(index: int) -> str:
    return f"part p{index % PARTS}"


def stacked_bars(title: str, description: str, bars: Sequence[tuple[str, Sequence[float]]], axis_name: str) -> Markup:
    """`bars`: (label, parts); parts share one unit, which `axis_name` says. Labels longer than the room are cut."""
    longest = max((sum(parts) for _, parts in bars), default=0.0) or 1.0
    scale = Scale(0.0, longest, LABEL_WIDTH, WIDTH - 12)
    drawn = []
    for row, (label, parts) in enumerate(bars):
        top = 6 + row * GAP
        short = label if len(label) <= 14 else label[:13] + "…"
        drawn.append(element("text", short, x=LABEL_WIDTH - 8, y=top + 14, class_="tick end strong"))
        reached = 0.0
        for index, part in enumerate(parts):
            start, end = scale.at(reached), scale.at(reached + part)
            drawn.append(element("rect", x=start, y=top, width=end - start, height=BAR, class_=part_class(index)))
            reached += part
    bottom = 6 + len(bars) * GAP
    drawn += [
        element("text", tick_label(tick), x=scale.at(tick), y=bottom + 12, class_="tick middle")
        for tick in scale.ticks(5)
    ]
    drawn.append(element("text", axis_name, x=(LABEL_WIDTH + WIDTH) / 2, y=bottom + 30, class_="axis-name middle"))
    return drawing(WIDTH, bottom + 38, title, description, *drawn)
