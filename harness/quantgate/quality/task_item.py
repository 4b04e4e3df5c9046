"""What every kind of task has in common: items with a prompt, a checker and a likelihood twin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from quantgate.traces.record import Message

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an arm wrote; `truncated` where the token limit ended it rather than the arm."""

    text: str
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """A checker's judgement: the outcome, and the steps that led to it, each a metric of its own.

    `parts` are steps towards the right answer; `behaviour` are habits of form, such as whether JSON was written.
    """

    correct: bool
    parts: Mapping[str, bool] = field(default_factory=dict)
    behaviour: Mapping[str, bool] = field(default_factory=dict)


class TaskItem(StrictModel):
    """One question of a task, with its right answer and plausible wrong ones."""

    distractors_fail_check: ClassVar[bool] = True
    """Whether the generation checker must refuse every distractor; false where it judges form alone."""

    id: Identifier
    cluster: Identifier | None = None
    """Items that share a document or a story share a cluster; by default each stands for itself."""

    @abstractmethod
    def messages(self) -> tuple[Message, ...]:
        """The chat that the arm answers."""

    def twin_messages(self) -> tuple[Message, ...]:
        """The chat under which the options are ranked; the same unless a kind says why not."""
        return self.messages()

    @property
    @abstractmethod
    def gold(self) -> str:
        """The right answer as the arm should write it."""

    @property
    def twin_gold(self) -> str:
        """The right answer as it is ranked; the gold itself unless a kind says why not."""
        return self.gold

    @property
    @abstractmethod
    def wrong_answers(self) -> tuple[str, ...]:
        """Plausible wrong answers in the form of `twin_gold`, which they are ranked against."""

    @abstractmethod
    def check(self, answer: Answer) -> Checked:
        """Judge a generated answer."""

    def accepts_option(self, option: str) -> bool:
        """Whether the checker would take one of the ranked options for right; used to prove the item itself."""
        return self.check(Answer(option)).correct

    @property
    def generation_floor(self) -> float:
        """Chance that an arm which knows nothing is judged correct."""
        return 0.0

    @property
    def twin_floor(self) -> float:
        """Chance that the gold ranks first among equals: 1 / (1 + distractors)."""
        return 1.0 / (1 + len(self.wrong_answers))

    def contradiction(self) -> str | None:
        """What a kind finds wrong between the item's fields; None where they fit."""
        return None

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        """An item whose own checker disagrees with it would measure its author."""
        if (contradiction := self.contradiction()) is not None:
            raise ValueError(f"item {self.id}: {contradiction}")
        if len({self.twin_gold, *self.wrong_answers}) <= len(self.wrong_answers):
            raise ValueError(f"item {self.id}: the gold answer and the distractors must all differ")
        if not self.check(Answer(self.gold)).correct:
            raise ValueError(f"item {self.id}: the checker refuses the item's own gold answer {self.gold!r}")
        for wrong in self.wrong_answers if self.distractors_fail_check else ():
            if self.accepts_option(wrong):
                raise ValueError(f"item {self.id}: the checker accepts the distractor {wrong!r}")
        return self


class Task(StrictModel):
    """One task file: a kind, its settings and its items. Kinds narrow `kind` and `items`."""

    schema_: Literal["quantgate.task/1"] = Field(alias="schema")
    name: Identifier
    title: Text
    licence: Literal["Apache-2.0"]
    """Items are shown in reports and travel in the wheel, so their licence must be the project's own."""
    max_tokens: Annotated[int, Field(strict=True, ge=1, le=512)]
    """Limit of a generated answer, in tokens."""
    items: Sequence[TaskItem]

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Self:
        seen: set[str] = set()
        for item in self.items:
            if item.id in seen:
                raise ValueError(f"item id {item.id!r} stands twice in the task {self.name!r}; ids must be unique")
            seen.add(item.id)
        return self
