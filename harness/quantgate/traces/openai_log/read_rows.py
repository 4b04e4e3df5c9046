"""Reads the lines of a request log into rows, and counts those that are left out."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.json_object import json_object
from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.openai_log.log_rows import LogRows
from quantgate.traces.openai_log.row_reader import RowReader
from quantgate.traces.openai_log.shapes import shape_of_row
from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError


def read_rows(lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> LogRows:
    """Raises ConfigurationError naming file, line and field, also for a log of which nothing is left."""
    result = LogRows()
    reader: RowReader | None = None
    for line in lines:
        where = f"{source}, line {line.number}"
        row = json_object(line.text, where)
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
            result.leave_out(left_out.kind, f"line {line.number}: {left_out}")
        except ValueError as error:
            raise ConfigurationError(f"{where}, {error}.") from None
    result.require_some(source)
    return result
