"""What a section hands to its template: tables of text, and charts with their legend and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Table:
    """Ready text, row by row; the first cell of each row names the row."""

    headers: list[str]
    rows: list[list[str]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A name beside the line, marker or area that stands for it in the chart."""

    label: str
    swatch: Markup


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart. `explanation` tells a reader who knows nothing of the run how to read it; `table` holds its numbers."""

    title: str
    explanation: str
    svg: Markup
    legend: list[LegendEntry] = field(default_factory=list)
    table: Table | None = None
