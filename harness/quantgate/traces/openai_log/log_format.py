"""Request logs of OpenAI-compatible servers and gateways: one JSON object a line, in whatever place its fields are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from quantgate.traces.first_line import is_request_log
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.log_row import LogRow
from quantgate.traces.openai_log.read_rows import LogRows, read_rows
from quantgate.traces.openai_log.sessions import FoundSessions, find_sessions
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import LocatedRecord, ParsedTrace, TraceFormat, register_trace_format
from quantgate.traces.source_line import SourceLine
from quantgate.traces.transform_record import TransformRecord

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
        return ParsedTrace(_records(in_order, sessions), (_step(found, sessions),))


def _step(found: LogRows, sessions: FoundSessions) -> TransformRecord:
    rows = found.rows
    parameters = {
        "shape": found.shape,
        "left_out": dict(found.left_out),
        "out_of_order": sum(later.start_ns < row.start_ns for row, later in pairwise(rows)),
        "output_lengths_from": dict(Counter(row.output_length_from for row in rows)),
        "sessions_given": sessions.given,
        "sessions_inferred": sessions.inferred,
        "overlapping_turns": sessions.overlapping_turns,
        "think_times_from_start": sessions.think_times_from_start,
        "dropped_parts": dict(found.dropped_parts),
        "requests_that_offered_tools": sum(row.offered_tools for row in rows),
        "requests_for_several_answers": sum(row.several_answers for row in rows),
    }
    return TransformRecord("read log", parameters, found.total, len(rows), found.total - len(rows))


def _records(rows: Sequence[LogRow], sessions: FoundSessions) -> list[LocatedRecord]:
    start_ns = rows[0].start_ns
    class_of_session: dict[str, str] = {}
    located = []
    for position, row in enumerate(rows):
        turn = sessions.turns.get(position)
        # A session has one class; its first request says which.
        slo_class = class_of_session.setdefault(turn.session_id, row.slo_class) if turn else row.slo_class
        record = TraceRecord(
            request_id=row.request_id,
            scheduled_ns=row.start_ns - start_ns,
            max_tokens=row.output_tokens,
            messages=row.messages,
            prompt_text=row.prompt_text,
            prompt_token_count=row.prompt_tokens,
            slo_class=slo_class,
            session_id=turn.session_id if turn else None,
            turn=turn.turn if turn else 1,
            think_time_ns=turn.think_time_ns if turn else 0,
            tags=row.tags,
            limit_tokens=row.limit_tokens,
        )
        located.append(LocatedRecord(row.line, record))
    return located
