"""The rows that a reader found in a log, and what it left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from quantgate.traces.left_out_rows import nothing_left
from quantgate.traces.openai_log.log_row import LogRow
from quantgate.traces.openai_log.sessions import FoundSessions
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import LocatedRecord
from quantgate.traces.transform_record import TransformRecord
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

    def leave_out(self, kind: str, where_and_why: str) -> None:
        self.first_left_out = self.first_left_out or where_and_why
        self.left_out[kind] += 1

    def require_some(self, source: str, called: str = "rows") -> None:
        """Raises ConfigurationError, with the counts, where nothing is left to replay."""
        if self.rows:
            return
        if not self.total:
            raise ConfigurationError(f"{source}: expected {called} that can be replayed, got none.")
        raise nothing_left(source, self.left_out, self.first_left_out, called)


def step_of(found: LogRows, sessions: FoundSessions, name: str = "read log") -> TransformRecord:
    """What reading did to the log's rows."""
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
    return TransformRecord(name, parameters, found.total, len(rows), found.total - len(rows))


def to_records(rows: Sequence[LogRow], sessions: FoundSessions) -> list[LocatedRecord]:
    """Records of rows that are in order of their start."""
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
