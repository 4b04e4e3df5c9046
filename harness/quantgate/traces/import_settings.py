"""How a trace file is to be read, beyond its path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from quantgate.traces.openai_log.columns import ColumnMap

OtherParts = Literal["refuse", "drop"]


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """Settings of one import; each format uses those that it knows, and refuses a column map or a block size
    that it does not.

    format_name: a name of `trace_formats()`; None detects the format by the first line.
    columns: where a request log keeps its fields; None looks in the usual places.
    redact: replace known kinds of personal data; None does what the format does by default (request logs are redacted).
    strict: refuse the file for the first row that would be left out, instead of counting it.
    other_parts: what becomes of message parts that are no text, such as images: refuse the file, or drop and count.
    block_tokens: tokens of each of the blocks whose ids a trace tells; None: as many as the format has by itself.
    count_tokens: tokens of a text, for answers whose length the log does not tell; None estimates by characters.
    """

    format_name: str | None = None
    columns: ColumnMap | None = None
    redact: bool | None = None
    strict: bool = False
    other_parts: OtherParts = "refuse"
    block_tokens: int | None = None
    count_tokens: Callable[[str], int] | None = None
