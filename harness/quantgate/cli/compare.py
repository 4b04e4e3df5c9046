"""`quantgate compare`: stored runs and result files of other tools side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def compare(
    results: Annotated[
        list[Path], typer.Argument(help="Run folders, and results of guidellm, aiperf or vllm bench serve.")
    ],
    result_format: Annotated[
        str | None,
        typer.Option(
            "--format", help="guidellm, aiperf, aiperf-records or vllm; default: recognised by each file's content."
        ),
    ] = None,
    arms: Annotated[
        str | None, typer.Option(help="FIRST:OTHER, the arms to pair across runs; default: those of the same id.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare results: request by request where two runs replayed the same plan, else side by side and unpaired.

    It gives no verdict; the exit code is 0. `quantgate run` measures arms in turn and judges them.

    Example: quantgate compare results/20270131T101500Z-3f9c benchmarks.json
    """
    from quantgate.comparison.arm_choice import parse_arm_pair
    from quantgate.comparison.compare import compare as compare_results
    from quantgate.comparison.document import comparison_document
    from quantgate.comparison.terminal import show_comparison

    pair = parse_arm_pair(arms) if arms is not None else None
    comparison = compare_results(results, format_name=result_format, arms=pair, seed=seed)
    if json_output:
        typer.echo(json.dumps(comparison_document(comparison), indent=2, ensure_ascii=False))
    else:
        show_comparison(comparison, Console())
