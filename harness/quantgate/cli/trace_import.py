"""`quantgate trace import` and `quantgate trace transform`: a trace of any format, written in our own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quantgate.cli.flag_groups import takes_flag_groups
from quantgate.cli.reading_flags import ReadingFlags
from quantgate.cli.trace_output import OutputFlags
from quantgate.cli.traffic_flags import TransformFlags

if TYPE_CHECKING:
    from quantgate.workload.transforms import WorkloadTransform

_Trace = Annotated[Path, typer.Argument(help="Trace or request log, of any format that replay reads.")]
_Tokenizer = Annotated[
    str | None,
    typer.Option(help="Counts texts whose length the trace does not tell: known model, folder or Hub id."),
]


@takes_flag_groups
def import_trace_file(
    trace: _Trace, *, output: OutputFlags, reading: ReadingFlags, tokenizer: _Tokenizer = None
) -> None:
    """Write a trace or request log in quantgate's own format: every row that is traffic, checked and in order of time.

    Example: quantgate trace import access.jsonl --columns columns.yaml --out traffic.jsonl
    """
    _convert(trace, output, reading, tokenizer, (), 0)


@takes_flag_groups
def transform_trace_file(
    trace: _Trace,
    *,
    output: OutputFlags,
    transforms: TransformFlags,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is drawn.")] = 0,
    tokenizer: _Tokenizer = None,
    reading: ReadingFlags,
) -> None:
    """Write a part of a trace, or another schedule of it, in quantgate's own format.

    Example: quantgate trace transform traffic.jsonl --window 600:120 --speed 2 --out busy.jsonl
    """
    _convert(trace, output, reading, tokenizer, transforms.transforms(), seed)


def _convert(
    trace: Path,
    output: OutputFlags,
    reading: ReadingFlags,
    tokenizer_name: str | None,
    transforms: Sequence[WorkloadTransform],
    seed: int,
) -> None:
    from quantgate.traces.reader import import_trace
    from quantgate.workload.build_plan import apply_transforms
    from quantgate.workload.prompt_encoder import PromptEncoder
    from quantgate.workload.transforms import TransformContext
    from quantgate_engine.model.tokenizer import load_tokenizer

    output.check(trace)
    tokenizer = None if tokenizer_name is None else load_tokenizer(tokenizer_name)
    imported = import_trace(trace, reading.settings(tokenizer))
    context = TransformContext(PromptEncoder(tokenizer, seed), seed)
    records, history = apply_transforms(imported.records, transforms, context)
    output.write(records, (*imported.steps, *history))
