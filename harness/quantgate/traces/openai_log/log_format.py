"""Request logs of OpenAI-compatible servers and gateways: one JSON object a line, in whatever place its fields are."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.traces.first_line import is_request_log
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.log_rows import step_of, to_records
from quantgate.traces.openai_log.read_rows import read_rows
from quantgate.traces.openai_log.sessions import find_sessions
from quantgate.traces.registry import ParsedTrace, TraceFormat, register_trace_format
from quantgate.traces.source_line import SourceLine

NAME = "openai-log"


@register_trace_format
class OpenAILog(TraceFormat):
    """Reads requests and their recorded lengths, finds sessions, and counts what it leaves out."""

    name = NAME
    description = "a request log, one JSON object a line with a time and messages or a prompt"
    takes_column_map = True
    redacted_by_default = True

    def recognises(self, first_line: str) -> bool:
        return is_request_log(first_line)

    def read(self, lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> ParsedTrace:
        """Records in order of their start; logs are often written when answers end."""
        found = read_rows(lines, source, settings)
        in_order = sorted(found.rows, key=lambda row: row.start_ns)
        sessions = find_sessions(in_order)
        return ParsedTrace(to_records(in_order, sessions), (step_of(found, sessions),))
