"""The trace formats that can be read: each registers itself beside its reader."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.record import TraceRecord
from quantgate.traces.source_line import SourceLine
from quantgate.traces.transform_record import TransformRecord
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown


@dataclass(frozen=True, slots=True)
class LocatedRecord:
    """A record and the line that it came from, for messages about it."""

    line: int
    record: TraceRecord


@dataclass(frozen=True, slots=True)
class ParsedTrace:
    """The rows that a reader found, in order of time, and what it did to get them: told when the last row is read."""

    rows: Iterable[LocatedRecord]
    steps: Sequence[TransformRecord] = ()


class TraceFormat(ABC):
    """One file format. `source` is the file as messages show it: the path that the user gave.

    takes_arrays: a file may also be one JSON array of rows; `lines` are then its entries.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    takes_column_map: ClassVar[bool] = False
    takes_block_tokens: ClassVar[bool] = False
    redacted_by_default: ClassVar[bool] = False
    takes_arrays: ClassVar[bool] = False

    @abstractmethod
    def recognises(self, first_line: str) -> bool:
        """Whether a file that starts with this (first non-blank) line is of this format."""

    @abstractmethod
    def read(self, lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> ParsedTrace:
        """The whole file. Raises ConfigurationError naming file, line and field."""


class RowByRowFormat(TraceFormat):
    """A format whose rows stand for themselves: each becomes one record, none is left out."""

    @abstractmethod
    def parse(self, lines: Iterable[SourceLine], source: str) -> Iterator[LocatedRecord]:
        """The records in file order. Raises ConfigurationError naming file, line and field."""

    def read(self, lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> ParsedTrace:
        del settings  # Nothing in them concerns a format that takes every row as it is.
        return ParsedTrace(self.parse(lines, source))


_formats: dict[str, TraceFormat] = {}


def register_trace_format(cls: type[TraceFormat]) -> type[TraceFormat]:
    """Class decorator: makes the format known under `cls.name`."""
    if cls.name in _formats:
        raise ValueError(f"A trace format called {cls.name!r} is registered already.")
    _formats[cls.name] = cls()
    return cls


def trace_formats() -> dict[str, TraceFormat]:
    """The registered formats by name."""
    return dict(_formats)


def trace_format(name: str) -> TraceFormat:
    """The format of that name. Raises ConfigurationError for an unknown one."""
    try:
        return _formats[name]
    except KeyError:
        known = ", ".join(sorted(_formats))
        raise ConfigurationError(f"Trace format {shown(name)} is unknown; expected one of: {known}.") from None


def detect_trace_format(first_line: str, source: str) -> TraceFormat:
    """The one format that recognises the first line. Raises ConfigurationError where none does."""
    for candidate in _formats.values():
        if candidate.recognises(first_line):
            return candidate
    known = ", ".join(f"{item.name} ({item.description})" for item in _formats.values())
    raise ConfigurationError(
        f"{source}, line 1: the format of this trace is not recognised; expected one of: {known}; "
        "name the format explicitly where the file is one of them."
    )
