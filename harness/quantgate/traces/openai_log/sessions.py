"""Finds the sessions of a log: from its own session ids, else where one request continues another's conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from quantgate.traces.openai_log.log_row import LogRow
from quantgate.traces.record import Message


@dataclass(frozen=True, slots=True)
class Turn:
    """A row's place in its session, which is numbered by its first request: the log's own name may be a person's."""

    session_id: str
    turn: int
    think_time_ns: int


@dataclass(slots=True)
class FoundSessions:
    """turns: place of each row (by position) that shares a session with another.

    given, inferred: sessions by the log's ids, and by continued conversations. overlapping_turns: turns that the log
    starts before the previous answer had ended; a replay sends them right after it. think_times_from_start: turns
    whose think time counts from the previous request's start, because the log does not tell when its answer ended.
    """

    turns: dict[int, Turn] = field(default_factory=dict)
    given: int = 0
    inferred: int = 0
    overlapping_turns: int = 0
    think_times_from_start: int = 0


def find_sessions(rows: Sequence[LogRow]) -> FoundSessions:
    """Sessions among rows in order of their start."""
    by_name: dict[str, list[int]] = {}
    without_name = []
    for position, row in enumerate(rows):
        if row.session is None:
            without_name.append(position)
        else:
            by_name.setdefault(row.session, []).append(position)
    given = [chain for chain in by_name.values() if len(chain) > 1]
    inferred = [chain for chain in _continued(rows, without_name) if len(chain) > 1]
    found = FoundSessions(given=len(given), inferred=len(inferred))
    for number, chain in enumerate(sorted(given + inferred), start=1):
        for turn, position in enumerate(chain, start=1):
            think_time_ns = 0 if turn == 1 else _think_time_ns(rows[chain[turn - 2]], rows[position], found)
            found.turns[position] = Turn(f"session-{number:06d}", turn, think_time_ns)
    return found


def _think_time_ns(previous: LogRow, row: LogRow, found: FoundSessions) -> int:
    if previous.end_ns is None:
        found.think_times_from_start += 1
        return row.start_ns - previous.start_ns
    if row.start_ns < previous.end_ns:
        found.overlapping_turns += 1
    return max(0, row.start_ns - previous.end_ns)


def _continued(rows: Sequence[LogRow], positions: Iterable[int]) -> list[list[int]]:
    """Chains of rows whose messages begin with the whole of the row before and its recorded answer, exactly.

    A conversation is continued once: a second request from the same state (an answer asked for again) starts a chain of
    its own. Of several rows in the same state, the one that was asked last is continued. Rows of different users never
    join.
    """
    chains: list[list[int]] = []
    # State of a conversation (user, messages with the answer) -> the chains that stand there.
    open_chains: dict[bytes, list[int]] = {}
    for position in positions:
        row = rows[position]
        if row.messages is None:
            continue
        chain = _take_continued(row, open_chains)
        if chain is None:
            chain = len(chains)
            chains.append([])
        chains[chain].append(position)
        if row.answer is not None:
            open_chains.setdefault(_states(row.user, (*row.messages, row.answer))[-1], []).append(chain)
    return chains


def _take_continued(row: LogRow, open_chains: dict[bytes, list[int]]) -> int | None:
    messages = row.messages or ()
    states = _states(row.user, messages)
    for length in range(len(messages) - 1, 0, -1):
        standing = open_chains.get(states[length - 1]) if messages[length - 1].role == "assistant" else None
        if standing:
            return standing.pop()
    return None


def _states(user: str | None, messages: Sequence[Message]) -> list[bytes]:
    """A hash of each prefix of the messages: conversations are compared without keeping their texts."""
    digest = hashlib.sha256(repr(user).encode())
    states = []
    for message in messages:
        digest.update(repr((message.role, message.content)).encode())
        states.append(digest.copy().digest())
    return states
