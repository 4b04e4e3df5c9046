"""Replaces personal data in texts by placeholders that keep apart what was apart: `[EMAIL_1]`, `[EMAIL_2]`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

# Importing the package registers every kind.
from quantgate.privacy import kinds as kinds
from quantgate.privacy.kind import PersonalDataKind
from quantgate.privacy.registry import known_kinds


class Redactor:
    """Redacts the texts of one scope, a session or a lone request: in it the same value gets the same number.

    A conversation's later turns repeat its earlier ones; numbers by first appearance keep these prefixes equal, so that
    prefix caches work as they did for the real texts.
    """

    def __init__(self, kinds: Sequence[PersonalDataKind] | None = None) -> None:
        self._kinds = known_kinds() if kinds is None else tuple(kinds)
        self._numbers: dict[tuple[str, str], int] = {}
        self._numbered: Counter[str] = Counter()
        self._done: dict[str, str] = {}
        self.found: Counter[str] = Counter()
        """Places replaced, by kind."""

    def redact(self, text: str) -> str:
        """The text with placeholders; the same text gives the same result. Redacting a result changes nothing."""
        if text not in self._done:
            self._done[text] = self._redacted(text)
        return self._done[text]

    def _redacted(self, text: str) -> str:
        """Until nothing is found any more: a number that stood beside another may show only when that one is gone."""
        while (passed := self._passed_once(text)) != text:
            text = passed
        return text

    def _passed_once(self, text: str) -> str:
        for kind in self._kinds:
            pieces, copied = [], 0
            for start, end in kind.find(text):
                pieces += [text[copied:start], self._placeholder(kind.name, text[start:end])]
                copied = end
            if pieces:
                text = "".join([*pieces, text[copied:]])
        return text

    def _placeholder(self, kind: str, value: str) -> str:
        self.found[kind] += 1
        key = (kind, value.casefold())
        if key not in self._numbers:
            self._numbered[kind] += 1
            self._numbers[key] = self._numbered[kind]
        return f"[{kind}_{self._numbers[key]}]"
