"""A request before it has a time, a length and an id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["chat", "rag", "code", "tools"]


@dataclass(frozen=True, slots=True)
class DraftTurn:
    """One request's messages as (role, content), and what judges the answer."""

    messages: tuple[tuple[str, str], ...]
    checker: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A session of one or more turns. `may_wait` marks work that a service would run in its batch class."""

    kind: Kind
    turns: tuple[DraftTurn, ...]
    may_wait: bool = False
