"""Which turns of a conversation are requests: each question, a human's or a tool's, with the answer right behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from quantgate.traces.record import Message

LeftOutKind = Literal["unanswered", "answer_without_question", "behind_empty_turn", "empty_answer"]
"""unanswered: a question with no answer behind it. answer_without_question: one that opens the conversation, which is
cut off, or follows another answer, which stays in the history. behind_empty_turn: a conversation is replayed up to its
first empty turn, since what follows rests on something that is not there. empty_answer: no token in it."""

_REASONS: dict[LeftOutKind, str] = {
    "unanswered": "expected an answer right behind this turn",
    "answer_without_question": "expected a human's or a tool's turn right before this answer",
    "behind_empty_turn": "expected a text, got an empty turn, from which on the conversation is not replayed",
    "empty_answer": "expected an answer of at least one token",
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """messages: the conversation up to the question. turn: the answer's place in the file's list."""

    messages: tuple[Message, ...]
    answer: str
    turn: int


@dataclass(frozen=True, slots=True)
class LeftOutTurn:
    """count: requests that are lost with it."""

    kind: LeftOutKind
    turn: int
    count: int = 1

    def __str__(self) -> str:
        return f"field conversations.{self.turn}: {_REASONS[self.kind]}"


def exchanges_of(system: Message | None, turns: Sequence[Message]) -> tuple[list[Exchange], list[LeftOutTurn]]:
    """The requests in order, and the turns that are part of none."""
    exchanges: list[Exchange] = []
    left_out: list[LeftOutTurn] = []
    history = [] if system is None else [system]
    question: int | None = None
    asked = False
    for index, turn in enumerate(turns):
        if turn.role == "system":
            history += [turn] if turn.content.strip() else []
            continue
        if not turn.content.strip():
            lost = sum(later.role == "assistant" for later in turns[index:])
            left_out.append(LeftOutTurn("behind_empty_turn", index, max(1, lost)))
            question = None if turn.role == "assistant" else question
            break
        if turn.role != "assistant":
            if question is not None and turn.role == "user":
                left_out.append(LeftOutTurn("unanswered", question))
            question, asked = index, True
            history.append(turn)
        elif question is not None:
            exchanges.append(Exchange(tuple(history), turn.content, index))
            question = None
            history.append(turn)
        else:
            left_out.append(LeftOutTurn("answer_without_question", index))
            history += [turn] if asked else []
    if question is not None:
        left_out.append(LeftOutTurn("unanswered", question))
    return exchanges, left_out
