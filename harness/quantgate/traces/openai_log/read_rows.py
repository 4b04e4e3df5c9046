"""Reads the lines of a request log into rows, and counts those that are left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.openai_log.log_row import LogRow
from quantgate.traces.openai_log.row_reader import RowReader
from quantgate.traces.openai_log.shapes import shape_of_row
from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError


@dataclass(slots=True)
class LogRows:
    """rows: in file order. left_out: rows by why they are no traffic. dropped_parts: parts of messages by type."""

    rows: list[LogRow] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    dropped_parts: Counter[str] = field(default_factory=Counter)
    shape: str = ""
    first_left_out: str = ""

    @property
    def total(self) -> int:
        return len(self.rows) + self.left_out.total()


def read_rows(lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> LogRows:
    """Raises ConfigurationError naming file, line and field, also for a log of which nothing is left."""
    result = LogRows()
    reader: RowReader | None = None
    for line in lines:
        where = f"{source}, line {line.number}"
        row = _object(line.text, where)
        if reader is None:
            shape = shape_of_row(row)
            result.shape = shape.name if settings.columns is None else "column map"
            reader = RowReader(settings.columns or shape.columns, settings)
            result.dropped_parts = reader.messages.dropped_parts
        try:
            result.rows.append(reader.read(row, line.number))
        except RowLeftOutError as left_out:
            if settings.strict and left_out.kind != "not_selected":
                raise ConfigurationError(
                    f"{where}: {left_out}; mend or remove the row, or read the log without strict."
                ) from None
            result.first_left_out = result.first_left_out or f"line {line.number}: {left_out}"
            result.left_out[left_out.kind] += 1
        except ValueError as error:
            raise ConfigurationError(f"{where}, {error}.") from None
    if not result.rows:
        kinds = ", ".join(f"{kind.replace('_', ' ')}: {count}" for kind, count in sorted(result.left_out.items()))
        raise ConfigurationError(
            f"{source}: none of its {result.total} rows can be replayed ({kinds}); the first one, "
            f"{result.first_left_out}."
        )
    return result


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"{where}: expected one JSON object, got text that is not JSON ({error.msg} at column {error.colno}); mend "
            "or remove the line."
        ) from None
    except (ValueError, RecursionError):
        raise ConfigurationError(f"{where}: expected one JSON object of sensible size and depth.") from None
    if not isinstance(row, dict):
        raise ConfigurationError(f"{where}: expected one JSON object, got another JSON value.")
    return row
