"""Rows of CSV traces: cells by column, and the numbers in them, with errors that name file, line and field."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

# Nine digits are more tokens than any request has, and few enough for every integer type downstream.
_TOKENS = re.compile(r"[0-9]{1,9}")
# A longer text is no label.
_LONGEST_LABEL = 100
# Ten digits of seconds reach beyond the year 2200 where they count from 1970.
_SECONDS = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,9})[0-9]*)?")


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row's cells by column. where: file and line, as messages begin."""

    where: str
    cells: dict[str, str]

    def text(self, column: str) -> str:
        return self.cells[column].strip()

    def label(self, column: str) -> str:
        """A short text that can be shown; it may be empty."""
        text = self.text(column)
        if len(text) > _LONGEST_LABEL or not text.isprintable():
            raise self.wrong(column, f"at most {_LONGEST_LABEL} printable characters")
        return text

    def tokens(self, column: str) -> int:
        """A count of tokens, 0 included."""
        text = self.text(column)
        if _TOKENS.fullmatch(text) is None:
            raise self.wrong(column, "an integer from 0 to 999999999")
        return int(text)

    def seconds_ns(self, column: str) -> int:
        """A number of seconds in whole nanoseconds, digits below them left out."""
        match = _SECONDS.fullmatch(self.text(column))
        if match is None:
            raise self.wrong(column, "a number of seconds from 0 to 9999999999, such as 45 or 45.25")
        return int(match[1]) * 1_000_000_000 + int((match[2] or "").ljust(9, "0"))

    def wrong(self, column: str, expected: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self.where}, field {column}: expected {expected}, got {shown(self.cells[column])}."
        )


def csv_row(line: SourceLine, source: str, columns: Sequence[str]) -> CsvRow:
    """Raises ConfigurationError for another number of cells than of columns."""
    where = f"{source}, line {line.number}"
    cells = split_cells(line.text, where)
    if len(cells) != len(columns):
        raise ConfigurationError(f"{where}: expected {len(columns)} columns ({', '.join(columns)}), got {len(cells)}.")
    return CsvRow(where, dict(zip(columns, cells, strict=True)))


def split_cells(text: str, where: str) -> list[str]:
    """The cells of one line. Raises ConfigurationError for quotes that do not close and the like."""
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise ConfigurationError(f"{where}: expected a row of CSV on one line, got another text ({error}).") from None
