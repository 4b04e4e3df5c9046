"""`quantgate trace synth`: new traffic of the kind that a recorded trace shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from quantgate.cli.flag_groups import takes_flag_groups
from quantgate.cli.reading_flags import ReadingFlags
from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate.workload.synthesis.fit import TrafficFit

SCHEMA = "quantgate.trace-synth/1"


@takes_flag_groups
def synthesize_trace_file(
    trace: Annotated[Path, typer.Argument(help="Trace or request log, of any format that replay reads.")],
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write, in quantgate's own format.")] = None,
    duration: Annotated[float | None, typer.Option(help="Seconds; default: as long as the recorded trace.")] = None,
    rate: Annotated[float | None, typer.Option(help="Requests per second on average; default: the recorded.")] = None,
    speed: Annotated[float | None, typer.Option(help="The recorded rate times this, instead of --rate.")] = None,
    window: Annotated[float, typer.Option(help="Seconds over which rate and burstiness are taken as steady.")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is drawn.")] = 0,
    fit_only: Annotated[bool, typer.Option("--fit-only", help="Print what was fitted, and draw nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Counts texts whose length the trace does not tell: known model, folder or Hub id."),
    ] = None,
    reading: ReadingFlags,
) -> None:
    """Fit a recorded trace and draw a new one of any duration and rate: same bursts, lengths, sessions and sharing.

    Example: quantgate trace synth traffic.jsonl --duration 600 --rate 4 --out drawn.jsonl
    """
    from quantgate.cli.trace_output import OutputFlags
    from quantgate.traces.native_writer import write_native
    from quantgate.traces.reader import import_trace
    from quantgate.workload.prompt_encoder import PromptEncoder
    from quantgate.workload.synthesis.comparison import asked_figures, found_figures
    from quantgate.workload.synthesis.draw import draw_traffic
    from quantgate.workload.synthesis.fit import fit_traffic
    from quantgate_engine.model.tokenizer import load_tokenizer

    for name, value in (("duration", duration), ("rate", rate), ("speed", speed), ("window", window)):
        if value is not None and not 0.0 < value < float("inf"):
            raise ConfigurationError(f"--{name} is {value:g}; expected a number above 0.")
    if rate is not None and speed is not None:
        raise ConfigurationError("--rate and --speed both say how fast requests come; give one of them.")
    if out is None and not fit_only:
        raise ConfigurationError("Neither --out nor --fit-only was given; say where the drawn trace is to be written.")
    if out is not None and not fit_only:
        OutputFlags(out, force).check(trace)
    counter = None if tokenizer is None else load_tokenizer(tokenizer)
    imported = import_trace(trace, reading.settings(counter))
    fit = fit_traffic(imported.records, window, None if counter is None else PromptEncoder(counter, seed).count)
    if out is None or fit_only:
        _print_fit(fit, json_output)
        return
    duration_s = fit.duration_s if duration is None else duration
    rate_rps = rate if rate is not None else fit.rate_rps * (speed or 1.0)
    drawn = draw_traffic(fit, duration_s=duration_s, rate_rps=rate_rps, seed=seed)
    write_native(out, drawn)
    document = {
        "schema": SCHEMA,
        "out": str(out),
        "seed": seed,
        "duration_s": duration_s,
        "rows": len(drawn),
        "asked": asked_figures(fit, rate_rps),
        "found": found_figures(drawn, duration_s, window * duration_s / fit.duration_s),
    }
    _print_draw(document, json_output)


def _print_fit(fit: TrafficFit, json_output: bool) -> None:
    if json_output:
        typer.echo(json.dumps(fit.to_json(), indent=2))
        return
    lines = [
        f"{fit.rows:,} requests in {fit.duration_s:,.0f} s: {fit.rate_rps:.3g} requests/s, {fit.units:,} sessions and "
        f"single requests, gaps of CV {fit.gap_cv:.2f} within windows"
    ]
    lines += [
        f"from {window.start_s:,.0f} s for {window.length_s:,.0f} s: {window.rate:.3g} starts/s, CV {window.gap_cv:.2f}"
        for window in fit.windows
    ]
    _print_lines(lines)


def _print_draw(document: dict[str, Any], json_output: bool) -> None:
    if json_output:
        typer.echo(json.dumps(document, indent=2))
        return
    lines = [f"{document['out']}: {document['rows']:,} rows in {document['duration_s']:,.0f} s"]
    for name, asked in document["asked"].items():
        if asked is not None:
            found = document["found"][name]
            lines.append(f"{name}: asked {asked:.4g}, found {'none' if found is None else f'{found:.4g}'}")
    _print_lines(lines)


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        Console().print(line, markup=False, highlight=False, soft_wrap=True)
