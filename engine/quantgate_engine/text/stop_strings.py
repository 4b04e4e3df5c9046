"""Strings that end an answer, wherever tokens are cut."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Passes text on until one of the strings has come; keeps back what could be the beginning of one.

    The string that is complete first ends the text (of several, the one that began first), so that the outcome does not
    depend on how the text is cut into pieces.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = tuple(strings)
        self._longest = max(map(len, self._strings), default=0)
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """The text that can be shown now; none once `stopped` is true."""
        if self.stopped:
            return ""
        text = self._held + text
        found = [(at + len(string), at) for string in self._strings if (at := text.find(string)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            _, start = min(found)
            return text[:start]
        kept = self._longest_beginning(text)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def flush(self) -> str:
        """What was kept back, when no text follows."""
        held, self._held = self._held, ""
        return held

    def _longest_beginning(self, text: str) -> int:
        """Length of the longest end of `text` that is the beginning of a string."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            if any(string.startswith(text[-length:]) for string in self._strings):
                return length
        return 0
