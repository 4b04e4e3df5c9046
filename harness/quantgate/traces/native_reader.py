"""Reads our own format: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from quantgate.traces.first_line import is_request_log
from quantgate.traces.native_errors import explain_row_error
from quantgate.traces.native_row import NativeRow
from quantgate.traces.registry import LocatedRecord, RowByRowFormat, register_trace_format
from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError


@register_trace_format
class NativeTrace(RowByRowFormat):
    """quantgate's JSONL; the fields are those of `NativeRow`."""

    name = "quantgate-jsonl"
    description = "one JSON object a line, with id, offset and max_tokens"

    def recognises(self, first_line: str) -> bool:
        return first_line.lstrip().startswith("{") and not is_request_log(first_line)

    def parse(self, lines: Iterable[SourceLine], source: str) -> Iterator[LocatedRecord]:
        for line in lines:
            try:
                row = NativeRow.model_validate_json(line.text)
            except ValidationError as error:
                raise ConfigurationError(explain_row_error(error, source, line.number)) from None
            yield LocatedRecord(line.number, row.to_record())
