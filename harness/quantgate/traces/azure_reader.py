"""Reads the Azure LLM inference traces of 2023 and 2024 (Azure/AzurePublicDataset; cite Splitwise, ISCA 2024).

Three columns, lengths only. The 2023 files write `2023-11-16 18:17:03.9799600`, the 2024 files mix
`2024-05-10 00:00:00.009930+00:00` with `2024-05-12 00:00:00+00:00`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import LocatedRecord, RowByRowFormat, register_trace_format
from quantgate.traces.source_line import SourceLine
from quantgate.traces.timestamps import timestamp_to_ns
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_EXPECTED_TIME = "a time such as 2023-11-16 18:17:03.9799600 or 2024-05-12 00:00:00+00:00"


@register_trace_format
class AzureTrace(RowByRowFormat):
    """Azure's CSV. Rows have no ids of their own: `azure-000001` is the first row's."""

    name = "azure-csv"
    description = f"a CSV file with the header {','.join(COLUMNS)}"

    def recognises(self, first_line: str) -> bool:
        return tuple(first_line.strip().split(",")) == COLUMNS

    def parse(self, lines: Iterable[SourceLine], source: str) -> Iterator[LocatedRecord]:
        start_ns: int | None = None
        for index, line in enumerate(lines):
            if index == 0:
                _require_header(line, source)
                continue
            time_text, context_text, generated_text = _split(line, source)
            time_ns = _time(time_text, line, source)
            start_ns = time_ns if start_ns is None else start_ns
            record = TraceRecord(
                request_id=f"azure-{index:06d}",
                scheduled_ns=time_ns - start_ns,
                max_tokens=_tokens(generated_text, "GeneratedTokens", line, source),
                prompt_token_count=_tokens(context_text, "ContextTokens", line, source),
            )
            yield LocatedRecord(line.number, record)


def _require_header(line: SourceLine, source: str) -> None:
    if tuple(line.text.strip().split(",")) != COLUMNS:
        raise ConfigurationError(
            f"{source}, line {line.number}: expected the header {','.join(COLUMNS)}, got {shown(line.text.strip())}."
        )


def _split(line: SourceLine, source: str) -> list[str]:
    cells = next(csv.reader([line.text]))
    if len(cells) != len(COLUMNS):
        raise ConfigurationError(
            f"{source}, line {line.number}: expected {len(COLUMNS)} columns ({', '.join(COLUMNS)}), got {len(cells)}."
        )
    return cells


def _time(text: str, line: SourceLine, source: str) -> int:
    try:
        return timestamp_to_ns(text.strip())
    except ValueError:
        raise ConfigurationError(
            f"{source}, line {line.number}, field TIMESTAMP: expected {_EXPECTED_TIME}, got {shown(text)}."
        ) from None


def _tokens(text: str, column: str, line: SourceLine, source: str) -> int:
    stripped = text.strip()
    # Nine digits are more tokens than any request has, and few enough for every integer type downstream.
    if stripped.isascii() and stripped.isdigit() and len(stripped) <= 9 and int(stripped) >= 1:
        return int(stripped)
    raise ConfigurationError(
        f"{source}, line {line.number}, field {column}: expected an integer from 1 to 999999999, got {shown(text)}."
    )
