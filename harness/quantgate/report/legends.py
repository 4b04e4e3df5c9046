"""Legends that more than one section uses."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.report.charts.series_style import area_swatch, line_swatch
from quantgate.report.charts.stacked_bars import part_class
from quantgate.report.figures import LegendEntry
from quantgate.report.run_view import ArmView


def arm_legend(arms: Sequence[ArmView]) -> list[LegendEntry]:
    return [LegendEntry(arm.arm_id, line_swatch(arm.style)) for arm in arms]


def part_legend(names: Sequence[str]) -> list[LegendEntry]:
    return [LegendEntry(name, area_swatch(part_class(index))) for index, name in enumerate(names)]
