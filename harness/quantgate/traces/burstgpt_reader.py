"""Reads BurstGPT traces (HPMLL/BurstGPT; CC-BY-4.0; cite "BurstGPT: A Real-World Workload Dataset", 2024).

Lengths only, times in seconds since a midnight: whole ones in the first releases, `19440110.0` in the later ones, which
also tell sessions (blank in API logs) and how many seconds an answer took. No answer (0 response tokens) marks a
request that failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from typing_extensions import override

from quantgate.traces.csv_rows import CsvRow, csv_row, split_cells
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.left_out_rows import without_prompt
from quantgate.traces.lengths_format import LengthsFormat, LengthsReader
from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import register_trace_format
from quantgate.traces.session_turns import SessionTurns
from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

COLUMNS = ("Timestamp", "Model", "Request tokens", "Response tokens", "Total tokens", "Log Type")
SESSION, ELAPSED = "Session ID", "Elapsed time"


@register_trace_format
class BurstGPTTrace(LengthsFormat):
    """BurstGPT's CSV. Rows have no ids of their own: `burstgpt-000001` is the first row's."""

    name = "burstgpt-csv"
    description = f"a CSV file with the columns {','.join(COLUMNS)}"

    def recognises(self, first_line: str) -> bool:
        return set(COLUMNS) <= set(_names(first_line))

    @override
    def reader(self, lines: Iterator[SourceLine], source: str, settings: ImportSettings) -> LengthsReader:
        header = next(lines)
        where = f"{source}, line {header.number}"
        columns = [cell.strip() for cell in split_cells(header.text, where)]
        wanted = sorted([*COLUMNS, *({SESSION, ELAPSED} & set(columns))])
        if sorted(columns) != wanted:
            raise ConfigurationError(
                f"{where}: expected the columns {','.join(COLUMNS)}, each once, and beside them only {SESSION} and "
                f"{ELAPSED}, got {shown(header.text.strip())}."
            )
        return _BurstGPTReader(source, columns)


def _names(first_line: str) -> list[str]:
    return [cell.strip() for cell in first_line.split(",")]


class _BurstGPTReader(LengthsReader):
    def __init__(self, source: str, columns: list[str]) -> None:
        self._source = source
        self._columns = columns
        self._sessions = SessionTurns()

    def read(self, line: SourceLine, number: int) -> TraceRecord:
        row = csv_row(line, self._source, self._columns)
        start_ns = row.seconds_ns("Timestamp")
        elapsed_ns = row.seconds_ns(ELAPSED) if row.cells.get(ELAPSED, "").strip() else None
        prompt_tokens, answer_tokens = _lengths(row)
        name = row.cells.get(SESSION, "").strip()
        turn = None
        if name:
            turn = self._sessions.next_turn(name, start_ns, None if elapsed_ns is None else start_ns + elapsed_ns)
        return TraceRecord(
            request_id=f"burstgpt-{number:06d}",
            scheduled_ns=self.since_start_ns(start_ns),
            max_tokens=answer_tokens,
            prompt_token_count=prompt_tokens,
            session_id=turn.session_id if turn else None,
            turn=turn.turn if turn else 1,
            think_time_ns=turn.think_time_ns if turn else 0,
            tags=tuple(tag for tag in (row.label("Model"), row.label("Log Type")) if tag),
        )

    def counts(self) -> dict[str, int]:
        return self._sessions.counts()


def _lengths(row: CsvRow) -> tuple[int, int]:
    prompt_tokens, answer_tokens = row.tokens("Request tokens"), row.tokens("Response tokens")
    if row.tokens("Total tokens") != prompt_tokens + answer_tokens:
        raise row.wrong(
            "Total tokens", f"{prompt_tokens + answer_tokens}, the sum of Request tokens and Response tokens"
        )
    if answer_tokens == 0:
        raise RowLeftOutError("failed", "field Response tokens: expected a request that succeeded, got 0")
    if prompt_tokens == 0:
        raise without_prompt("Request tokens")
    return prompt_tokens, answer_tokens
