"""Turns of sessions that a trace names, worked out row by row in order of time."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate.traces.openai_log.sessions import Turn


@dataclass(slots=True)
class _Last:
    session_id: str
    turn: int
    start_ns: int
    end_ns: int | None


class SessionTurns:
    """Numbers sessions by their first row, since the trace's own names may be persons', and counts as `FoundSessions`.

    Holds one entry a session, no rows.
    """

    def __init__(self) -> None:
        self._last: dict[str, _Last] = {}
        self._sessions = 0
        self._overlapping_turns = 0
        self._think_times_from_start = 0

    def next_turn(self, name: str, start_ns: int, end_ns: int | None) -> Turn:
        """The place of the session's next row; `end_ns` is None where the trace does not tell when its answer ended."""
        last = self._last.get(name)
        if last is None:
            last = self._last[name] = _Last(f"session-{len(self._last) + 1:06d}", 1, start_ns, end_ns)
            return Turn(last.session_id, 1, 0)
        think_time_ns = self._think_time_ns(last, start_ns)
        self._sessions += last.turn == 1
        last.turn, last.start_ns, last.end_ns = last.turn + 1, start_ns, end_ns
        return Turn(last.session_id, last.turn, think_time_ns)

    def counts(self) -> dict[str, int]:
        """sessions_given: sessions of more than one turn."""
        return {
            "sessions_given": self._sessions,
            "overlapping_turns": self._overlapping_turns,
            "think_times_from_start": self._think_times_from_start,
        }

    def _think_time_ns(self, last: _Last, start_ns: int) -> int:
        if last.end_ns is None:
            self._think_times_from_start += 1
            return max(0, start_ns - last.start_ns)
        self._overlapping_turns += start_ns < last.end_ns
        return max(0, start_ns - last.end_ns)
