"""What a kind of personal data is: a name, and where it stands in a text."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NamedTuple


class Span(NamedTuple):
    """Characters `start` (included) to `end` (excluded)."""

    start: int
    end: int


class PersonalDataKind(ABC):
    """One kind. `name` stands in placeholders and counts."""

    name: ClassVar[str]

    @abstractmethod
    def find(self, text: str) -> Iterator[Span]:
        """Places in order, without overlap."""


class PatternKind(PersonalDataKind):
    """A kind that a regular expression finds; the group `secret`, where there is one, is what is replaced."""

    pattern: ClassVar[re.Pattern[str]]

    def find(self, text: str) -> Iterator[Span]:
        group = "secret" if "secret" in self.pattern.groupindex else 0
        for match in self.pattern.finditer(text):
            if self.accepts(match[group]):
                yield Span(*match.span(group))

    @staticmethod
    def accepts(found: str) -> bool:
        """Whether a match is the real thing: checksums and ranges are told here."""
        return bool(found)
