"""Reads the traces of Mooncake (kvcache-ai/Mooncake, FAST 2025): lengths, and ids of prompts' blocks of 512 tokens."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import override

from quantgate.traces.first_line import is_block_trace
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.left_out_rows import without_answer, without_prompt
from quantgate.traces.lengths_format import LengthsFormat, LengthsReader
from quantgate.traces.native_errors import explain_row_error, repeated_key
from quantgate.traces.native_row import MOST_TOKENS, BlockId
from quantgate.traces.prompt_blocks import PromptBlocks, misfit
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import register_trace_format
from quantgate.traces.repeated_keys import RepeatedKeyError, refuse_repeated_keys
from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError

BLOCK_TOKENS = 512
_LATEST_MS = 9_999_999_999_999
_TOKENS = "an integer from 0 to 1e9"


class MooncakeRow(BaseModel):
    """One request. Other fields are refused: formats with more of them look like this one and count in other units."""

    model_config = ConfigDict(extra="forbid", strict=True)

    timestamp: float = Field(ge=0, le=_LATEST_MS, description="a number of milliseconds from 0")
    input_length: int = Field(ge=0, le=MOST_TOKENS, description=f"{_TOKENS} (prompt tokens)")
    output_length: int = Field(ge=0, le=MOST_TOKENS, description=f"{_TOKENS} (tokens of the answer)")
    hash_ids: tuple[BlockId, ...] = Field(description="a list of integers from 0 (ids of the prompt's blocks)")

    @property
    def time_ns(self) -> int:
        whole = int(self.timestamp)
        return whole * 1_000_000 + round((self.timestamp - whole) * 1_000_000)


@register_trace_format
class MooncakeTrace(LengthsFormat):
    """Mooncake's JSONL. Rows have no ids of their own: `mooncake-000001` is the first row's."""

    name = "mooncake-jsonl"
    description = "one JSON object a line, with timestamp, input_length, output_length and hash_ids"
    takes_block_tokens = True

    def recognises(self, first_line: str) -> bool:
        return is_block_trace(first_line)

    @override
    def reader(self, lines: Iterator[SourceLine], source: str, settings: ImportSettings) -> LengthsReader:
        return _MooncakeReader(source, settings.block_tokens or BLOCK_TOKENS)


class _MooncakeReader(LengthsReader):
    def __init__(self, source: str, block_tokens: int) -> None:
        self._source = source
        self._block_tokens = block_tokens

    def read(self, line: SourceLine, number: int) -> TraceRecord:
        row = self._row(line)
        wrong = misfit(len(row.hash_ids), row.input_length, self._block_tokens)
        if wrong is not None:
            raise ConfigurationError(
                f"{self._source}, line {line.number}, field hash_ids: {wrong}; mend the row, or say the trace's block "
                "size with --block-tokens (block_tokens in a suite)."
            )
        if row.input_length == 0:
            raise without_prompt("input_length")
        if row.output_length == 0:
            raise without_answer("output_length")
        return TraceRecord(
            request_id=f"mooncake-{number:06d}",
            scheduled_ns=self.since_start_ns(row.time_ns),
            max_tokens=row.output_length,
            prompt_token_count=row.input_length,
            prompt_blocks=PromptBlocks(row.hash_ids, self._block_tokens),
        )

    def _row(self, line: SourceLine) -> MooncakeRow:
        try:
            row = MooncakeRow.model_validate_json(line.text)
            refuse_repeated_keys(line.text)
        except ValidationError as error:
            raise ConfigurationError(explain_row_error(error, self._source, line.number, MooncakeRow)) from None
        except RepeatedKeyError as repeated:
            raise ConfigurationError(repeated_key(repeated, self._source, line.number)) from None
        return row
