"""Reads conversations into requests, and counts what is part of none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.json_object import json_object
from quantgate.traces.openai_log.token_counts import length_of_text
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import LocatedRecord
from quantgate.traces.sharegpt.conversation import Conversation, conversation_of
from quantgate.traces.sharegpt.exchanges import LeftOutTurn, exchanges_of
from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown


@dataclass(slots=True)
class ReadConversations:
    """rows: requests in file order. left_out: requests by why they are not replayed."""

    rows: list[LocatedRecord] = field(default_factory=list)
    conversations: int = 0
    without_request: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    first_left_out: str = ""
    output_lengths_from: Counter[str] = field(default_factory=Counter)
    dropped_parts: Counter[str] = field(default_factory=Counter)
    offered_tools: int = 0


def read_conversations(lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> ReadConversations:
    """Raises ConfigurationError naming file, line, conversation and field, also where nothing can be replayed."""
    read = ReadConversations()
    number_of_name: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        place = f"line {line.number}, conversation {number}"
        where = f"{source}, {place}"
        row = json_object(line.text, where)
        try:
            conversation = conversation_of(row, settings.other_parts)
        except ValueError as error:
            raise ConfigurationError(f"{where}, {error}.") from None
        if conversation.name is not None and number_of_name.setdefault(conversation.name, number) != number:
            raise ConfigurationError(
                f"{where}, field id: expected an id that no other conversation has, got {shown(conversation.name)}, "
                f"which conversation {number_of_name[conversation.name]} has already."
            )
        read.conversations = number
        read.dropped_parts.update(conversation.other_parts)
        before, left_out = len(read.rows), _add_requests(read, conversation, line.number, settings)
        if settings.strict and (left_out or len(read.rows) == before):
            reason = left_out[0] if left_out else "expected a question with an answer"
            raise ConfigurationError(
                f"{where}, {reason}; mend or remove the conversation, or read the file without strict."
            )
        _count_left_out(read, left_out, place)
        read.without_request += len(read.rows) == before
    if not read.rows:
        kinds = ", ".join(f"{kind.replace('_', ' ')}: {count}" for kind, count in sorted(read.left_out.items()))
        raise ConfigurationError(
            f"{source}: none of its {read.conversations} conversations has a request that can be replayed "
            f"({kinds or 'they have no turns'}){read.first_left_out and f'; the first one, {read.first_left_out}'}."
        )
    return read


def _add_requests(
    read: ReadConversations, conversation: Conversation, line: int, settings: ImportSettings
) -> list[LeftOutTurn]:
    """Appends the conversation's requests; returns what is left out of it."""
    number = read.conversations
    exchanges, left_out = exchanges_of(conversation.system, conversation.turns)
    turn = 0
    for exchange in exchanges:
        tokens, source = length_of_text(exchange.answer, settings.count_tokens)
        if tokens < 1:
            left_out.append(LeftOutTurn("empty_answer", exchange.turn))
            continue
        turn += 1
        record = TraceRecord(
            request_id=f"{conversation.name or f'conversation-{number}'}-{turn}",
            scheduled_ns=0,
            max_tokens=tokens,
            messages=exchange.messages,
            session_id=f"session-{number:06d}",
            turn=turn,
        )
        read.rows.append(LocatedRecord(line, record))
        read.output_lengths_from[source] += 1
        read.offered_tools += conversation.offered_tools
    return left_out


def _count_left_out(read: ReadConversations, left_out: list[LeftOutTurn], place: str) -> None:
    for turn in left_out:
        read.first_left_out = read.first_left_out or f"{place}, {turn}"
        read.left_out[turn.kind] += turn.count
