"""`quantgate replay`: one arm under one trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from quantgate.cli.engine_flags import EngineFlags
from quantgate.cli.flag_groups import takes_flag_groups
from quantgate.cli.flag_values import settings_from_flags
from quantgate.cli.run import DEFAULT_RESULTS
from quantgate.cli.traffic_flags import LOAD_FLAGS, TrafficFlags
from quantgate.progress import ProgressReporter


@takes_flag_groups
def replay(
    trace: Annotated[Path, typer.Argument(help="Trace: quantgate JSONL, request log, or a public trace.")],
    *,
    model: Annotated[str, typer.Option(help="Known name, Hugging Face folder or id, or GGUF file.")] = (
        "smollm2-135m-instruct"
    ),
    scheme: Annotated[str, typer.Option(help="Precision of the arm.")] = "fp16",
    trace_format: Annotated[str | None, typer.Option("--format", help="Reader; default: by the first line.")] = None,
    block_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens in a block of a Mooncake trace.")] = None,
    traffic: TrafficFlags,
    engine: EngineFlags,
    request_timeout: Annotated[float | None, typer.Option(help="Seconds that a client waits for an answer.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of thinning, arrivals and stand-in prompts.")] = 0,
    results: Annotated[Path, typer.Option(help="Folder that the run's folder is made in.")] = DEFAULT_RESULTS,
    no_text: Annotated[bool, typer.Option("--no-text", help="Keep prompts and answers out of the results.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print run.json on standard output.")] = False,
) -> None:
    """Replay a recorded trace on one arm: latency, throughput, and a certificate of delivered against intended load.

    Example: quantgate replay access.jsonl --window 0:120 --thin 0.1 --max-prompt-tokens 512 --max-output-tokens 64
    """
    from quantgate.arms.config import BundledArmConfig
    from quantgate.report.terminal import measured_table
    from quantgate.run.arms import ArmPlan
    from quantgate.run.replay_trace import replay_trace
    from quantgate.run.session import RunOptions
    from quantgate.suite import WorkloadConfig

    workload = settings_from_flags(
        WorkloadConfig,
        {
            "trace": str(trace),
            "format": trace_format,
            "block_tokens": block_tokens,
            "transforms": traffic.transforms(),
            "blocks": 1,
            **traffic.load(),
            "request_timeout_s": request_timeout,
        },
        {"request_timeout_s": "--request-timeout", **LOAD_FLAGS},
    )
    console = Console(stderr=True)
    folder, stored = replay_trace(
        trace,
        ArmPlan(
            arms=[BundledArmConfig(scheme=scheme, role="baseline")],
            model=model,
            tokenizer=None,
            engine=engine.settings(),
            aa=False,
            request_timeout_s=request_timeout,
        ),
        workload,
        seed,
        RunOptions(results=results, command=["quantgate", *sys.argv[1:]], keep_text=not no_text),
        ProgressReporter(console),
    )
    if json_output:
        typer.echo(stored.manifest.model_dump_json(by_alias=True, indent=2))
    else:
        measured_table(stored, Console())
    console.print(f"report: {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
    if not all(certificate.valid for certificate in stored.manifest.fidelity):
        reasons = " ".join(reason for certificate in stored.manifest.fidelity for reason in certificate.reasons)
        console.print(f"The load was not delivered: {reasons}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(3)
