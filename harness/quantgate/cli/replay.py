"""`quantgate replay`: one arm under one trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from quantgate.cli.run import DEFAULT_RESULTS
from quantgate.progress import ProgressReporter
from quantgate_engine.errors import ConfigurationError


def replay(
    trace: Annotated[Path, typer.Argument(help="Trace file: quantgate JSONL or Azure LLM inference CSV.")],
    model: Annotated[str, typer.Option(help="Known name, Hugging Face folder or id, or GGUF file.")] = (
        "smollm2-135m-instruct"
    ),
    scheme: Annotated[str, typer.Option(help="Precision of the arm.")] = "fp16",
    trace_format: Annotated[str | None, typer.Option("--format", help="Reader; default: by the first line.")] = None,
    window: Annotated[str | None, typer.Option(help="START:LENGTH in seconds of the trace.")] = None,
    speed: Annotated[float, typer.Option(min=0.001, help="2 replays twice as fast.")] = 1.0,
    thin: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of sessions and requests that stay.")] = 1.0,
    max_prompt_tokens: Annotated[int | None, typer.Option(min=1, help="Longest prompt.")] = None,
    max_output_tokens: Annotated[int | None, typer.Option(min=1, help="Longest output.")] = None,
    clip_policy: Annotated[
        Literal["drop", "cut"], typer.Option(help="What becomes of requests above a limit.")
    ] = "drop",
    limit: Annotated[int | None, typer.Option(min=1, help="First requests only.")] = None,
    max_active_requests: Annotated[int, typer.Option(min=1, help="Requests that hold KV at the same time.")] = 16,
    max_step_tokens: Annotated[int, typer.Option(min=1, help="Token budget of one engine step.")] = 256,
    request_timeout: Annotated[float | None, typer.Option(help="Seconds that a client waits for an answer.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of thinning and of stand-in prompts.")] = 0,
    results: Annotated[Path, typer.Option(help="Folder that the run's folder is made in.")] = DEFAULT_RESULTS,
    no_text: Annotated[bool, typer.Option("--no-text", help="Keep prompts and answers out of the results.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print run.json on standard output.")] = False,
) -> None:
    """Replay a recorded trace on one arm: latency, throughput, and a certificate of delivered against intended load.

    Example: quantgate replay trace.csv --window 0:120 --thin 0.1 --max-prompt-tokens 512 --max-output-tokens 64
    """
    from quantgate.run.replay_trace import replay_trace
    from quantgate.run.session import RunOptions
    from quantgate.suite import ArmConfig, EngineSettings, WorkloadConfig
    from quantgate.workload.transforms import Clip, Limit, Speed, Thin, Window, WorkloadTransform

    transforms: list[WorkloadTransform] = []
    if window is not None:
        start, length = _window(window)
        transforms.append(Window(start_s=start, length_s=length))
    if thin < 1.0:
        transforms.append(Thin(keep=thin))
    if max_prompt_tokens is not None or max_output_tokens is not None:
        transforms.append(
            Clip(max_prompt_tokens=max_prompt_tokens, max_output_tokens=max_output_tokens, policy=clip_policy)
        )
    if limit is not None:
        transforms.append(Limit(requests=limit))
    if speed != 1.0:
        transforms.append(Speed(factor=speed))
    workload = WorkloadConfig(
        trace=str(trace),
        format=trace_format,
        transforms=tuple(transforms),
        blocks=1,
        request_timeout_s=request_timeout,
    )
    console = Console(stderr=True)
    folder, stored = replay_trace(
        trace,
        model,
        ArmConfig(scheme=scheme, role="baseline"),
        EngineSettings(max_active_requests=max_active_requests, max_step_tokens=max_step_tokens),
        workload,
        seed,
        RunOptions(results=results, command=["quantgate", *sys.argv[1:]], keep_text=not no_text),
        ProgressReporter(console),
    )
    if json_output:
        typer.echo(stored.manifest.model_dump_json(by_alias=True, indent=2))
    console.print(f"report: {folder / 'report.html'}", markup=False, highlight=False)
    if not all(certificate.valid for certificate in stored.manifest.fidelity):
        reasons = " ".join(reason for certificate in stored.manifest.fidelity for reason in certificate.reasons)
        console.print(f"The load was not delivered: {reasons}", markup=False, highlight=False)
        raise typer.Exit(3)


def _window(text: str) -> tuple[float, float]:
    start, _, length = text.partition(":")
    try:
        return float(start), float(length)
    except ValueError:
        raise ConfigurationError(f"--window is {text!r}; expected START:LENGTH in seconds, such as 600:120.") from None
