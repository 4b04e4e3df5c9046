"""`quantgate doctor`"""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from quantgate.doctor.check import Check
from quantgate.doctor.examine import Diagnosis, examine

MARKS = {"ok": "[green]ok[/]", "missing": "[red]missing[/]", "note": "[yellow]note[/]"}
UNHEALTHY_EXIT_CODE = 2


def doctor(
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Say what this machine has: libraries, processor, memory, compiler, models, kernel paths; and what is missing.

    Exit code 0, or 2 where something is missing that quantgate cannot work without.

    Example: quantgate doctor
    """
    diagnosis = examine()
    if json_output:
        typer.echo(json.dumps(diagnosis.to_json(), indent=2))
    else:
        _show(diagnosis, Console())
    if not diagnosis.healthy:
        raise typer.Exit(UNHEALTHY_EXIT_CODE)


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
