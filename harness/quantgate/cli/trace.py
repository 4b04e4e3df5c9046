"""`quantgate trace`: look at recorded traffic, and write it anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from quantgate.cli.trace_anonymize import anonymize_trace_file
from quantgate.cli.trace_import import import_trace_file, transform_trace_file
from quantgate.cli.trace_synth import synthesize_trace_file

trace_commands = typer.Typer(name="trace", help="Recorded traffic before it is replayed: look at it, write it.")
trace_commands.command("import")(import_trace_file)
trace_commands.command("transform")(transform_trace_file)
trace_commands.command("anonymize")(anonymize_trace_file)
trace_commands.command("synth")(synthesize_trace_file)


@trace_commands.command()
def inspect(
    trace: Annotated[Path, typer.Argument(help="Trace or request log, of any format that replay reads.")],
    trace_format: Annotated[str | None, typer.Option("--format", help="Reader; default: by the first line.")] = None,
    columns: Annotated[Path | None, typer.Option(help="Column map of a request log (YAML).")] = None,
    block_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens in a block of a Mooncake trace.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse rows that would be left out and counted.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Show rate, burstiness, lengths, sessions, shared prefixes, and whether the clock ticks.

    Ten million rows need hardly more memory than ten thousand; request logs and spans are held.

    Example: quantgate trace inspect AzureLLMInferenceTrace_conv.csv
    """
    from quantgate.cli.inspection_table import print_inspection
    from quantgate.traces.import_settings import ImportSettings
    from quantgate.traces.inspection import inspect_trace
    from quantgate.traces.openai_log.columns import load_column_map

    settings = ImportSettings(
        format_name=trace_format,
        columns=None if columns is None else load_column_map(columns),
        strict=strict,
        block_tokens=block_tokens,
    )
    inspection = inspect_trace(trace, settings)
    if json_output:
        typer.echo(json.dumps(inspection.to_json(), indent=2))
    else:
        print_inspection(inspection, Console())
