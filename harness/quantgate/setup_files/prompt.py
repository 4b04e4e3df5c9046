"""Whom the questions of a set-up go to: a person, or nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quantgate_engine.errors import ConfigurationError


class Prompt(Protocol):
    """Somebody who answers questions. `flag` is the flag that would have answered one."""

    def text(self, question: str, /, *, flag: str, default: str | None = None) -> str:
        """An answer that is not empty."""

    def choice(self, question: str, choices: Sequence[str], /, *, default: str) -> str:
        """One of `choices`."""


class Nobody:
    """Takes defaults, and remembers which flags were needed in their place."""

    def __init__(self) -> None:
        self._needed: list[str] = []

    def text(self, _question: str, /, *, flag: str, default: str | None = None) -> str:
        if default is None:
            self._needed.append(flag)
        return default or ""

    def choice(self, _question: str, _choices: Sequence[str], /, *, default: str) -> str:
        return default

    def refuse_gaps(self) -> None:
        """Raises ConfigurationError where a question had no default."""
        if self._needed:
            flags = ", ".join(self._needed)
            raise ConfigurationError(f"Nobody is asked here, so that these flags are needed: {flags}.")
