"""Reads our own format: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from quantgate.traces.first_line import is_block_trace, is_conversation, is_request_log, is_spans
from quantgate.traces.native_errors import explain_row_error, repeated_key
from quantgate.traces.native_row import NativeRow
from quantgate.traces.registry import LocatedRecord, RowByRowFormat, register_trace_format
from quantgate.traces.repeated_keys import RepeatedKeyError, refuse_repeated_keys
from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError


@register_trace_format
class NativeTrace(RowByRowFormat):
    """quantgate's JSONL; the fields are those of `NativeRow`."""

    name = "quantgate-jsonl"
    description = "one JSON object a line, with id, offset and max_tokens"

    def recognises(self, first_line: str) -> bool:
        foreign = (is_request_log, is_block_trace, is_conversation, is_spans)
        return first_line.lstrip().startswith("{") and not any(tells(first_line) for tells in foreign)

    def parse(self, lines: Iterable[SourceLine], source: str) -> Iterator[LocatedRecord]:
        for line in lines:
            try:
                row = NativeRow.model_validate_json(line.text)
                refuse_repeated_keys(line.text)
            except ValidationError as error:
                raise ConfigurationError(explain_row_error(error, source, line.number)) from None
            except RepeatedKeyError as repeated:
                raise ConfigurationError(repeated_key(repeated, source, line.number)) from None
            yield LocatedRecord(line.number, row.to_record())
