"""Spans of OpenTelemetry's GenAI conventions: requests as the applications that made them saw them."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.traces.first_line import is_spans
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.log_rows import step_of, to_records
from quantgate.traces.openai_log.sessions import find_sessions
from quantgate.traces.otel_spans.read_spans import read_spans
from quantgate.traces.registry import ParsedTrace, TraceFormat, register_trace_format
from quantgate.traces.source_line import SourceLine


@register_trace_format
class OTelSpans(TraceFormat):
    """Export batches of OTLP/JSON, or single spans, one a line; requests with their texts, or with lengths alone."""

    name = "otel-spans"
    description = "OpenTelemetry spans, one export batch (resourceSpans) or one span a line"
    redacted_by_default = True

    def recognises(self, first_line: str) -> bool:
        return is_spans(first_line)

    def read(self, lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> ParsedTrace:
        """Records in order of their start; spans are written when they end."""
        found = read_spans(lines, source, settings)
        in_order = sorted(found.rows, key=lambda row: row.start_ns)
        sessions = find_sessions(in_order)
        return ParsedTrace(to_records(in_order, sessions), (step_of(found, sessions, "read spans"),))
