"""Kinds of logs that are told by their first row, each with the column map that reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quantgate.traces.openai_log.columns import ColumnMap, TimeColumn


@dataclass(frozen=True, slots=True)
class LogShape:
    name: str
    recognises: Callable[[dict[str, Any]], bool]
    columns: ColumnMap


SHAPES = (
    # The input of `aiperf anonymize-trace`, as its tutorial shows it: milliseconds from the log's start.
    LogShape(
        "aiperf",
        lambda row: {"timestamp", "messages", "output"} <= row.keys(),
        ColumnMap(time=TimeColumn(path="timestamp", unit="ms"), answer="output"),
    ),
    LogShape("openai", lambda _: True, ColumnMap()),
)


def shape_of_row(row: dict[str, Any]) -> LogShape:
    """The first shape that recognises the row; the last one takes all."""
    return next(shape for shape in SHAPES if shape.recognises(row))
