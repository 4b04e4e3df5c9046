"""`quantgate doctor`"""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from quantgate.doctor.check import Check
from quantgate.doctor.examine import Diagnosis, examine
from quantgate_engine.errors import ConfigurationError

MARKS = {"ok": "[green]ok[/]", "missing": "[red]missing[/]", "note": "[yellow]note[/]"}
UNHEALTHY_EXIT_CODE = 2
NOT_COMPILED_EXIT_CODE = 3


def doctor(
    kernels: Annotated[
        bool, typer.Option("--kernels", help="Instead: compile the GPU kernels and say what they are like; no GPU.")
    ] = False,
    arch: Annotated[list[str] | None, typer.Option(help="With --kernels: for sm_90, say; can be repeated.")] = None,
    kernel: Annotated[str, typer.Option(help="With --kernels: those with this in their name.")] = "",
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Say what this machine has: libraries, processor, memory, compiler, models, kernel paths; and what is missing.

    Exit code 0, or 2 where something is missing that quantgate cannot work without. With --kernels 2 where Triton is
    missing or too old, 3 where a kernel does not compile or a file cannot be written.

    Example: quantgate doctor --kernels --arch sm_90 --kernel decode_attention
    """
    if kernels:
        _survey_kernels(arch or [], kernel, json_output=json_output)
        return
    if arch or kernel:
        raise ConfigurationError("--arch and --kernel choose among the kernels of --kernels; add it.")
    diagnosis = examine()
    if json_output:
        typer.echo(json.dumps(diagnosis.to_json(), indent=2))
    else:
        _show(diagnosis, Console())
    if not diagnosis.healthy:
        raise typer.Exit(UNHEALTHY_EXIT_CODE)


def _survey_kernels(arch: list[str], kernel: str, *, json_output: bool) -> None:
    from quantgate.cli.kernel_tables import print_survey, survey_console
    from quantgate.doctor.gpu_kernels import chosen_architectures, survey
    from quantgate.progress import ProgressReporter

    surveyed = survey(chosen_architectures(arch), kernel, ProgressReporter(Console(stderr=True)))
    if json_output:
        typer.echo(json.dumps(surveyed.to_json(), indent=2))
    else:
        print_survey(surveyed, survey_console())
    if surveyed.failed:
        raise typer.Exit(NOT_COMPILED_EXIT_CODE)


def _show(diagnosis: Diagnosis, console: Console) -> None:
    console.print(_checks_table(diagnosis.checks))
    if diagnosis.kernels:
        console.print(_kernels_table(diagnosis))
    blocking = [check.name for check in diagnosis.checks if check.blocks]
    if blocking:
        console.print(f"Missing, and needed: {', '.join(blocking)}.", markup=False, style="bold red")
    else:
        console.print("Nothing that is needed is missing.")


def _checks_table(checks: list[Check]) -> Table:
    table = Table("", "what", box=None, pad_edge=False)
    table.add_column("found", overflow="fold")
    for check in checks:
        advice = f"\n-> {check.advice}" if check.advice else ""
        table.add_row(MARKS[check.status], check.name, _plain(check.found + advice))
    return table


def _kernels_table(diagnosis: Diagnosis) -> Table:
    table = Table("kernels", "scheme", "arithmetic", "paths", box=None, pad_edge=False)
    for entry in diagnosis.kernels:
        paths = "\n".join(f"{operation}: {path}" for operation, path in sorted(entry.paths.items()))
        table.add_row(entry.kernel_set, entry.scheme, entry.compute_dtype, _plain(paths))
    return table


def _plain(text: str) -> str:
    """Text that rich takes as it stands."""
    return text.replace("[", r"\[")
