"""Base of the formats that tell lengths without texts: rows stand for themselves, and some are no traffic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.left_out_rows import LeftOutRows
from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import LocatedRecord, ParsedTrace, TraceFormat
from quantgate.traces.source_line import SourceLine
from quantgate.traces.transform_record import TransformRecord


class LengthsReader(ABC):
    """Reads the rows of one file, in their order."""

    _start_ns: int | None = None

    @abstractmethod
    def read(self, line: SourceLine, number: int) -> TraceRecord:
        """The record of a row; `number` is 1 for the first row under the header, if there is one.

        Raises ConfigurationError, with file, line and field, for a row that is wrong, and RowLeftOutError for one that
        is no traffic.
        """

    def counts(self) -> dict[str, int]:
        """What was counted on the way, apart from rows that are left out."""
        return {}

    def since_start_ns(self, time_ns: int) -> int:
        """The time since that of the first row that is replayed."""
        if self._start_ns is None:
            self._start_ns = time_ns
        return time_ns - self._start_ns


class LengthsFormat(TraceFormat):
    """A format whose rows are read one by one, none of them held."""

    @abstractmethod
    def reader(self, lines: Iterator[SourceLine], source: str, settings: ImportSettings) -> LengthsReader:
        """A reader of the rows that are left in `lines` when it has taken the header, if there is one."""

    def read(self, lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> ParsedTrace:
        rest = iter(lines)
        reader = self.reader(rest, source, settings)
        steps: list[TransformRecord] = []
        return ParsedTrace(_rows(reader, rest, LeftOutRows(source, strict=settings.strict), steps), steps)


def _rows(
    reader: LengthsReader, lines: Iterator[SourceLine], left_out: LeftOutRows, steps: list[TransformRecord]
) -> Iterator[LocatedRecord]:
    """The records; what was done to the rows is added to `steps` behind the last one."""
    kept = 0
    for number, line in enumerate(lines, start=1):
        try:
            record = reader.read(line, number)
        except RowLeftOutError as reason:
            left_out.add(line.number, reason)
        else:
            kept += 1
            yield LocatedRecord(line.number, record)
    steps.append(left_out.step(kept, reader.counts()))
