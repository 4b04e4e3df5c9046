"""The flags that say how a trace or a log is read; the commands that write one take them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typing_extensions import override

if TYPE_CHECKING:
    from quantgate.traces.import_settings import ImportSettings
    from quantgate.workload.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class RowFlags:
    """What every format is read by, apart from blocks."""

    trace_format: Annotated[str | None, typer.Option("--format", help="Reader; default: by the first line.")] = None
    columns: Annotated[Path | None, typer.Option(help="Column map of a request log (YAML).")] = None
    no_redact: Annotated[
        bool, typer.Option("--no-redact", help="Leave personal data in what a log, conversations or spans say.")
    ] = False
    strict: Annotated[bool, typer.Option("--strict", help="Refuse rows that would be left out and counted.")] = False
    other_parts: Annotated[
        Literal["refuse", "drop"], typer.Option(help="What becomes of images and the like in messages.")
    ] = "refuse"

    def settings(self, tokenizer: Tokenizer | None) -> ImportSettings:
        """Raises ConfigurationError for a column map that is none."""
        from quantgate.traces.import_settings import ImportSettings
        from quantgate.traces.openai_log.columns import load_column_map

        return ImportSettings(
            format_name=self.trace_format,
            columns=None if self.columns is None else load_column_map(self.columns),
            redact=False if self.no_redact else None,
            strict=self.strict,
            other_parts=self.other_parts,
            count_tokens=None if tokenizer is None else _counter(tokenizer),
        )


@dataclass(frozen=True, slots=True)
class ReadingFlags(RowFlags):
    block_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens in a block of a Mooncake trace.")] = None

    @override
    def settings(self, tokenizer: Tokenizer | None) -> ImportSettings:
        # A dataclass with slots is another class than the one that super() without arguments looks for.
        return replace(RowFlags.settings(self, tokenizer), block_tokens=self.block_tokens)


def _counter(tokenizer: Tokenizer) -> Callable[[str], int]:
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))
