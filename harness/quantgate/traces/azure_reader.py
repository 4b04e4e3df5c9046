"""Reads the Azure LLM inference traces of 2023 and 2024 (Azure/AzurePublicDataset; cite Splitwise, ISCA 2024).

Three columns, lengths only. The 2023 files write `2023-11-16 18:17:03.9799600`, the 2024 files mix
`2024-05-10 00:00:00.009930+00:00` with `2024-05-12 00:00:00+00:00`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from quantgate.traces.csv_rows import csv_row
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.left_out_rows import without_answer, without_prompt
from quantgate.traces.lengths_format import LengthsFormat, LengthsReader
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import register_trace_format
from quantgate.traces.source_line import SourceLine
from quantgate.traces.timestamps import timestamp_to_ns
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_EXPECTED_TIME = "a time such as 2023-11-16 18:17:03.9799600 or 2024-05-12 00:00:00+00:00"


@register_trace_format
class AzureTrace(LengthsFormat):
    """Azure's CSV. Rows have no ids of their own: `azure-000001` is the first row's."""

    name = "azure-csv"
    description = f"a CSV file with the header {','.join(COLUMNS)}"

    def recognises(self, first_line: str) -> bool:
        return tuple(first_line.strip().split(",")) == COLUMNS

    @override
    def reader(self, lines: Iterator[SourceLine], source: str, settings: ImportSettings) -> LengthsReader:
        require_header(next(lines), source)
        return _AzureReader(source)


class _AzureReader(LengthsReader):
    def __init__(self, source: str) -> None:
        self._source = source

    def read(self, line: SourceLine, number: int) -> TraceRecord:
        row = azure_row(line, self._source)
        row.refuse_empty()
        return TraceRecord(
            request_id=f"azure-{number:06d}",
            scheduled_ns=self.since_start_ns(row.time_ns),
            max_tokens=row.generated_tokens,
            prompt_token_count=row.context_tokens,
        )


@dataclass(frozen=True, slots=True)
class AzureRow:
    """One row. `time_ns` counts from 1970-01-01 UTC."""

    time_ns: int
    context_tokens: int
    generated_tokens: int

    def refuse_empty(self) -> None:
        """Raises RowLeftOutError for a row without a prompt or without an answer."""
        if self.context_tokens == 0:
            raise without_prompt("ContextTokens")
        if self.generated_tokens == 0:
            raise without_answer("GeneratedTokens")


def require_header(line: SourceLine, source: str) -> None:
    """Raises ConfigurationError where the line is not the header."""
    if tuple(line.text.strip().split(",")) != COLUMNS:
        raise ConfigurationError(
            f"{source}, line {line.number}: expected the header {','.join(COLUMNS)}, got {shown(line.text.strip())}."
        )


def azure_row(line: SourceLine, source: str) -> AzureRow:
    """Raises ConfigurationError naming file, line and field."""
    row = csv_row(line, source, COLUMNS)
    try:
        time_ns = timestamp_to_ns(row.text("TIMESTAMP"))
    except ValueError:
        raise row.wrong("TIMESTAMP", _EXPECTED_TIME) from None
    return AzureRow(time_ns, row.tokens("ContextTokens"), row.tokens("GeneratedTokens"))
