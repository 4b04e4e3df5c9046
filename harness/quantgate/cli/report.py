"""`quantgate report`: the HTML report of stored runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from quantgate.cli.flag_values import finite
from quantgate_engine.errors import ConfigurationError

REPORT_FILE = "report.html"


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, results/<run id>.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for one run, folder for several; default: report.html in the run."),
    ] = None,
    price_per_hour: Annotated[
        float | None,
        typer.Option(min=0.0, help="Price of the device per hour, for the cost per million tokens.", callback=finite),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the paths written as JSON.")] = False,
) -> None:
    """Write the HTML report of runs, finished or interrupted: one file each that loads nothing from anywhere.

    Example: quantgate report results/20260101-120000-ab12 --price-per-hour 1.20
    """
    from quantgate.report.render import render_report
    from quantgate.report.stored_verdict import read_verdict
    from quantgate.store.atomic_file import write_text_atomically
    from quantgate.store.run_folder import load_run

    if output is not None and len(runs) > 1 and not output.is_dir():
        raise ConfigurationError(
            f"--output is {output}, but {len(runs)} reports are to be written; name an existing folder, or one run."
        )
    console = Console(stderr=True, soft_wrap=True)
    written = []
    for folder in runs:
        run = load_run(folder)
        html = render_report(run, read_verdict(folder), price_per_hour=price_per_hour)
        path = _destination(folder, run.manifest.run_id, output)
        write_text_atomically(path, html)
        written.append(str(path))
        console.print(f"report: {path}", markup=False, highlight=False)
    if json_output:
        typer.echo(json.dumps({"reports": written}))


def _destination(folder: Path, run_id: str, output: Path | None) -> Path:
    if output is None:
        return folder / REPORT_FILE
    if output.is_dir():
        return output / f"{run_id}.html"
    if not output.parent.is_dir():
        raise ConfigurationError(f"--output is {output}, but {output.parent} is no folder; make it or choose another.")
    return output
