"""Multiple-choice questions: the letter when generating, the option's text when ranking."""

from __future__ import annotations

import hashlib
import re
import string
from typing import Annotated, Literal

from pydantic import Field

from quantgate.quality.task_item import Answer, Checked, Task, TaskItem, Text
from quantgate.quality.text_matching import contains_phrase
from quantgate.traces.record import Message

_BARE_LETTER = re.compile(r"^\W*([A-Z])\W*$")
_LEADING_LETTER = re.compile(r"^\W*([A-Z])[.):]")
_NAMED_LETTER = re.compile(r"\b(?:answer|option|choice)(?:\s+is)?\s*:?\s*\(?\**([A-Z])\b")


class ChoiceItem(TaskItem):
    """`answer` is the right option, `distractors` the wrong ones; letters are dealt by a hash of the id."""

    question: Text
    answer: Text
    distractors: Annotated[list[Text], Field(min_length=1, max_length=7)]

    def options(self) -> dict[str, str]:
        """Letter to text, in an order that does not depend on where the author wrote the right one."""
        texts = sorted([self.answer, *self.distractors], key=lambda text: _digest(f"{self.id}:{text}"))
        return dict(zip(string.ascii_uppercase, texts, strict=False))

    def messages(self) -> tuple[Message, ...]:
        options = "\n".join(f"{letter}. {text}" for letter, text in self.options().items())
        return (Message("user", f"{self.question}\n{options}\nAnswer with the letter only."),)

    def twin_messages(self) -> tuple[Message, ...]:
        """The bare question: with the options in the prompt a small model ranks letters and copies, not knowledge."""
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
        """Correct: the first line names the right option, by letter or by text, and no other."""
        named = self._named_options(answer.text)
        return Checked(named == {self.answer}, behaviour={"option_named": bool(named)})

    def _named_options(self, text: str) -> set[str]:
        first_line = next(iter(text.strip().splitlines()), "")
        options = self.options()
        patterns = (_BARE_LETTER, _LEADING_LETTER, _NAMED_LETTER)
        letters = [match.group(1) for pattern in patterns if (match := pattern.search(first_line))]
        by_letter = {options.get(letter, letter) for letter in letters}
        return by_letter | {option for option in options.values() if contains_phrase(first_line, option)}


class ChoiceTask(Task):
    kind: Literal["multiple_choice"]
    items: Annotated[list[ChoiceItem], Field(min_length=1)]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
