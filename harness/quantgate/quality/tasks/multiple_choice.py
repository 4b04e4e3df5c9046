"""General knowledge with four options: asked openly when generating, ranked over the options by the twin.

Ranking the options' texts is how lm-evaluation-harness scores small models (cloze form). Shown as a lettered list, the
options would measure a liking for letters and places: a model of 135 million parameters answers "A" to everything.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quantgate.quality.task_item import Answer, Checked, Task, TaskItem, Text
from quantgate.quality.text_matching import contains_phrase, without_article
from quantgate.traces.record import Message

_INSTRUCTION = "Answer in a few words."


class ChoiceItem(TaskItem):
    """`answer` is the right option, `distractors` the wrong ones."""

    question: Text
    answer: Text
    distractors: Annotated[list[Text], Field(min_length=1)]

    def messages(self) -> tuple[Message, ...]:
        return (Message("system", _INSTRUCTION), Message("user", self.question))

    @property
    def gold(self) -> str:
        return self.answer

    @property
    def wrong_answers(self) -> tuple[str, ...]:
        return tuple(self.distractors)

    def check(self, answer: Answer) -> Checked:
        """Correct: the answer's first line names the right option, with any article, and no wrong one."""
        first_line = next(iter(answer.text.strip().splitlines()), "")
        named = {
            option
            for option in (self.answer, *self.distractors)
            if contains_phrase(first_line, without_article(option))
        }
        return Checked(named == {self.answer}, behaviour={"option_named": bool(named)})


class ChoiceTask(Task):
    kind: Literal["multiple_choice"]
    items: Annotated[list[ChoiceItem], Field(min_length=1)]
