"""Chats whose first turn sets a constraint: is it still kept at the last one?

The history is the recorded one, the same for every arm, so that answers pair; how an arm's own errors compound
over turns is another question, which this task does not ask.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quantgate.quality.constraints import AnyConstraint
from quantgate.quality.task_item import Answer, Checked, Task, TaskItem, Text
from quantgate.quality.text_matching import contains_any_phrase
from quantgate.traces.record import Message

_ROLES = ("user", "assistant")


class MultiTurnItem(TaskItem):
    """`turns` alternate between user and assistant and end with the user; `answers` are accepted contents."""

    turns: Annotated[list[Text], Field(min_length=3)]
    constraint: AnyConstraint
    answers: Annotated[list[Text], Field(min_length=1)]
    gold_answer: Text
    distractors: Annotated[list[Text], Field(min_length=1)]

    def contradiction(self) -> str | None:
        if len(self.turns) % 2 == 0:
            return f"its {len(self.turns)} turns end with the assistant's; the last must be a user's"
        return None

    def messages(self) -> tuple[Message, ...]:
        return tuple(Message(_ROLES[index % 2], text) for index, text in enumerate(self.turns))

    @property
    def gold(self) -> str:
        return self.gold_answer

    @property
    def wrong_answers(self) -> tuple[str, ...]:
        return tuple(self.distractors)

    def check(self, answer: Answer) -> Checked:
        """Correct: the constraint of the first turn is kept and an accepted content is there."""
        kept = self.constraint.kept(answer.text)
        answered = contains_any_phrase(answer.text, self.answers)
        return Checked(kept and answered, parts={"constraint_kept": kept, "answer_correct": answered})


class MultiTurnTask(Task):
    kind: Literal["multi_turn"]
    items: Annotated[list[MultiTurnItem], Field(min_length=1)]
