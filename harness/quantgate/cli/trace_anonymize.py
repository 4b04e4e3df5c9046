"""`quantgate trace anonymize`: a trace that says what an engine feels, and nothing that anybody said."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quantgate.cli.flag_groups import takes_flag_groups
from quantgate.cli.reading_flags import RowFlags
from quantgate.cli.trace_output import OutputFlags


@takes_flag_groups
def anonymize_trace_file(
    trace: Annotated[Path, typer.Argument(help="Trace or request log, of any format that replay reads.")],
    *,
    output: OutputFlags,
    tokenizer: Annotated[str, typer.Option(help="Whose tokens are counted: known model, folder or Hub id.")],
    block_tokens: Annotated[int, typer.Option(min=1, help="Tokens in a block that prompts may share.")] = 16,
    keep: Annotated[list[str] | None, typer.Option(help="Name of a class or tag that stays (repeatable).")] = None,
    reading: RowFlags,
) -> None:
    """Write a trace without a word of its texts: lengths, times, sessions and shared starts of prompts stay.

    Example: quantgate trace anonymize access.jsonl --tokenizer smollm2-135m-instruct --out shareable.jsonl
    """
    from quantgate.traces.reader import import_trace
    from quantgate.workload.anonymous import anonymize
    from quantgate.workload.prompt_encoder import PromptEncoder
    from quantgate_engine.model.tokenizer import load_tokenizer

    output.check(trace)
    loaded = load_tokenizer(tokenizer)
    imported = import_trace(trace, reading.settings(loaded))
    records, step = anonymize(imported.records, PromptEncoder(loaded), block_tokens, keep or ())
    output.write(records, (*imported.steps, step))
