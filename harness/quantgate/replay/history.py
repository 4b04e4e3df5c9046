"""Whose answers the later turns of a session see: those of the log, or those that the arm itself gave.

Recorded history gives every arm the same prompts, which is what pairing rests on. Live history shows how errors
compound over a conversation; its prompts differ from arm to arm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from quantgate.traces.record import Message
from quantgate.workload.plan import PlannedRequest

EncodeMessages = Callable[[tuple[Message, ...]], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class AnsweredTurn:
    """A turn as the plan has it, and the arm's whole answer; None where the arm gave none."""

    planned: PlannedRequest
    answer: str | None


class History(Protocol):
    """Makes the request that is sent out of the one that is planned."""

    @property
    def needs_answers(self) -> bool:
        """Whether `next_turn` looks at the answers; decoding them costs the driver time."""
        ...

    def next_turn(self, planned: PlannedRequest, earlier: Sequence[AnsweredTurn]) -> PlannedRequest:
        """earlier: the turns before it, in order."""
        ...


class RecordedHistory:
    """Sends what the plan says."""

    needs_answers = False

    def next_turn(self, planned: PlannedRequest, earlier: Sequence[AnsweredTurn]) -> PlannedRequest:
        del earlier
        return planned


class LiveHistory:
    """Puts the arm's own answers in the place of the log's.

    encode: token ids of a conversation, for plans that have them; None for plans of texts alone.
    """

    needs_answers = True

    def __init__(self, encode: EncodeMessages | None) -> None:
        self._encode = encode

    def next_turn(self, planned: PlannedRequest, earlier: Sequence[AnsweredTurn]) -> PlannedRequest:
        """The request with each earlier turn's answer replaced.

        An earlier turn's answer is the assistant's message right behind that turn's own messages. Where the planned
        messages do not continue an earlier turn, where the arm gave no answer, and for prompts that are no chat, the
        log's words stay.
        """
        if planned.messages is None:
            return planned
        messages = list(planned.messages)
        for turn in earlier:
            place = _place_of_answer(planned.messages, turn.planned.messages)
            if place is not None and turn.answer is not None:
                messages[place] = Message("assistant", turn.answer)
        rebuilt = tuple(messages)
        if rebuilt == planned.messages:
            return planned
        if self._encode is not None and planned.prompt_token_ids:
            return replace(planned, messages=rebuilt, prompt_token_ids=self._encode(rebuilt))
        # What the log counted was the length of its own history.
        return replace(planned, messages=rebuilt, prompt_token_count=None)


def _place_of_answer(messages: tuple[Message, ...], earlier: tuple[Message, ...] | None) -> int | None:
    if earlier is None or len(messages) <= len(earlier) or messages[: len(earlier)] != earlier:
        return None
    return len(earlier) if messages[len(earlier)].role == "assistant" else None
