"""Constraints that a user sets in a chat's first turn and that an answer keeps or breaks."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field

from quantgate.quality.task_item import StrictModel, Text
from quantgate.quality.text_matching import contains_phrase, plain_quotes, words

_BULLET = re.compile(r"^\s*[-*]\s+\S")


class Constraint(StrictModel):
    @abstractmethod
    def kept(self, text: str) -> bool:
        """Whether an answer keeps the constraint."""


class StartsWith(Constraint):
    """The answer begins with this text, whatever its case."""

    kind: Literal["starts_with"]
    text: Text

    def kept(self, text: str) -> bool:
        return _plain(text).startswith(_plain(self.text))


class EndsWith(Constraint):
    """The answer ends with this text, whatever its case."""

    kind: Literal["ends_with"]
    text: Text

    def kept(self, text: str) -> bool:
        return _plain(text).endswith(_plain(self.text))


class Mentions(Constraint):
    """The answer holds this phrase as whole words."""

    kind: Literal["mentions"]
    text: Text

    def kept(self, text: str) -> bool:
        return contains_phrase(text, self.text)


class Avoids(Constraint):
    """The answer holds none of these phrases."""

    kind: Literal["avoids"]
    phrases: Annotated[list[Text], Field(min_length=1)]

    def kept(self, text: str) -> bool:
        return bool(words(text)) and not any(contains_phrase(text, phrase) for phrase in self.phrases)


class AtMostWords(Constraint):
    """The answer has words, and no more than this many."""

    kind: Literal["at_most_words"]
    count: Annotated[int, Field(strict=True, ge=1)]

    def kept(self, text: str) -> bool:
        return 1 <= len(words(text)) <= self.count


class LetterCase(Constraint):
    """Every letter of the answer is upper (or lower) case."""

    kind: Literal["letter_case"]
    case: Literal["upper", "lower"]

    def kept(self, text: str) -> bool:
        return text.isupper() if self.case == "upper" else text.islower()


class Bullets(Constraint):
    """The answer is a list of exactly this many bullets, and nothing else."""

    kind: Literal["bullets"]
    count: Annotated[int, Field(strict=True, ge=1)]

    def kept(self, text: str) -> bool:
        lines = [line for line in text.splitlines() if line.strip()]
        return len(lines) == self.count and all(_BULLET.match(line) for line in lines)


AnyConstraint = Annotated[
    StartsWith | EndsWith | Mentions | Avoids | AtMostWords | LetterCase | Bullets, Field(discriminator="kind")
]


def _plain(text: str) -> str:
    return plain_quotes(text).strip().casefold()
