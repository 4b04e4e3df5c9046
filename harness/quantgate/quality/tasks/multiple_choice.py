"""Multiple-choice questions: the option's text, generated from a list of options and ranked without it."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from quantgate.quality.task_item import Answer, Checked, Task, TaskItem, Text
from quantgate.quality.text_matching import contains_phrase
from quantgate.traces.record import Message


class ChoiceItem(TaskItem):
    """`answer` is the right option, `distractors` the wrong ones."""

    question: Text
    answer: Text
    distractors: Annotated[list[Text], Field(min_length=1)]

    def options(self) -> list[str]:
        """All options, in an order that does not depend on where the author wrote the right one."""
        return sorted([self.answer, *self.distractors], key=lambda text: _digest(f"{self.id}:{text}"))

    def messages(self) -> tuple[Message, ...]:
        """Options without letters: small models answer with the first letter whatever it stands for."""
        return (Message("user", f"{self.question}\nChoose one: {'; '.join(self.options())}."),)

    def twin_messages(self) -> tuple[Message, ...]:
        """The bare question, so that knowledge is ranked and not the place in a list."""
        return (Message("user", self.question),)

    @property
    def gold(self) -> str:
        return self.answer

    @property
    def wrong_answers(self) -> tuple[str, ...]:
        return tuple(self.distractors)

    @property
    def generation_floor(self) -> float:
        return self.twin_floor

    def check(self, answer: Answer) -> Checked:
        """Correct: the answer's first line names the right option and no other."""
        first_line = next(iter(answer.text.strip().splitlines()), "")
        named = {option for option in self.options() if contains_phrase(first_line, option)}
        return Checked(named == {self.answer}, behaviour={"option_named": bool(named)})


class ChoiceTask(Task):
    kind: Literal["multiple_choice"]
    items: Annotated[list[ChoiceItem], Field(min_length=1)]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
