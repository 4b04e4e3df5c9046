"""Conversations as ShareGPT and the data sets after it keep them: one JSON array, or one conversation a line."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.traces.first_line import is_conversation
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.registry import ParsedTrace, TraceFormat, register_trace_format
from quantgate.traces.sharegpt.read_conversations import ReadConversations, read_conversations
from quantgate.traces.source_line import SourceLine
from quantgate.traces.transform_record import TransformRecord


@register_trace_format
class ShareGPTConversations(TraceFormat):
    """Texts without times: every session starts at 0 and thinks for no time, until a transform says when it comes."""

    name = "sharegpt-json"
    description = "conversations with from and value, a JSON array or one JSON object a line"
    redacted_by_default = True
    takes_arrays = True

    def recognises(self, first_line: str) -> bool:
        return is_conversation(first_line)

    def read(self, lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> ParsedTrace:
        read = read_conversations(lines, source, settings)
        return ParsedTrace(read.rows, (_step(read),))


def _step(read: ReadConversations) -> TransformRecord:
    left_out = read.left_out.total()
    parameters = {
        "conversations": read.conversations,
        "conversations_without_request": read.without_request,
        "left_out": dict(read.left_out),
        "output_lengths_from": dict(read.output_lengths_from),
        "without_times": len(read.rows),
        "dropped_parts": dict(read.dropped_parts),
        "requests_that_offered_tools": read.offered_tools,
    }
    return TransformRecord("read conversations", parameters, len(read.rows) + left_out, len(read.rows), left_out)
