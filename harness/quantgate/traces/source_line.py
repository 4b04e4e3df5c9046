"""One line of a trace file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLine:
    """`number` counts from 1, as editors do."""

    number: int
    text: str
