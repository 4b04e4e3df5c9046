"""`quantgate bench`: prefill and decode throughput alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from quantgate.cli.engine_flags import ENGINE_DEFAULTS
from quantgate.progress import ProgressReporter
from quantgate_engine.device_name import DeviceName
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.settings import KVDtypeName

Value = TypeVar("Value", int, str)


def bench(
    model: Annotated[str, typer.Option(help="Known name, Hugging Face folder or id, or GGUF file.")] = (
        "smollm2-135m-instruct"
    ),
    schemes: Annotated[str, typer.Option(help="Comma-separated schemes, one arm each.")] = "fp16,int8-w8a16,int4-g64",
    prompt_lengths: Annotated[str, typer.Option(help="Prompt lengths for prefill at batch 1.")] = "128,512",
    batch_sizes: Annotated[str, typer.Option(help="Batch sizes for decode.")] = "1,8,16",
    context: Annotated[int, typer.Option(min=1, help="Context tokens of each request while decode is measured.")] = 512,
    repeats: Annotated[int, typer.Option(min=1, help="Measurements of each figure; the median is reported.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random prompts.")] = 0,
    device: Annotated[
        DeviceName, typer.Option(help="Where to compute; auto: on a GPU if any.")
    ] = ENGINE_DEFAULTS.device,
    kv_dtype: Annotated[
        KVDtypeName, typer.Option(help="Precision of the KV cache of all arms.")
    ] = ENGINE_DEFAULTS.kv_dtype,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Measure the kernels of the deterministic mode.")
    ] = ENGINE_DEFAULTS.deterministic,
    threads: Annotated[int | None, typer.Option(min=1, help="Compute threads.")] = None,
    max_step_tokens: Annotated[int, typer.Option(min=1, help="Token budget of one engine step.")] = 512,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Measure prefill and decode throughput of each arm alone, with the device's bound beside.

    Example: quantgate bench --schemes fp16,int4-g64 --prompt-lengths 512 --batch-sizes 1,16
    """
    from quantgate.bench.bench_arms import BenchSettings, bench_arms
    from quantgate.bench.bench_tables import print_bench

    settings = BenchSettings(
        model=model,
        schemes=_distinct([part.strip() for part in schemes.split(",") if part.strip()], "--schemes"),
        prompt_lengths=_integers(prompt_lengths, "--prompt-lengths"),
        batch_sizes=_integers(batch_sizes, "--batch-sizes"),
        context_tokens=context,
        repeats=repeats,
        seed=seed,
        threads=threads,
        max_step_tokens=max_step_tokens,
        device=device,
        kv_dtype=kv_dtype,
        deterministic=deterministic,
    )
    if not settings.schemes:
        raise ConfigurationError("--schemes names no scheme; expected a list such as fp16,int4-g64.")
    document = bench_arms(settings, ProgressReporter(Console(stderr=True)))
    if json_output:
        typer.echo(json.dumps(document, indent=2))
    else:
        print_bench(document, Console())


def _distinct(values: Sequence[Value], option: str) -> tuple[Value, ...]:
    """Raises ConfigurationError for a value that stands twice: it would be measured once and look like an oversight."""
    for value in values:
        if values.count(value) > 1:
            raise ConfigurationError(f"{option} names {value} twice; name it once.")
    return tuple(values)


def _integers(text: str, option: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise ConfigurationError(f"{option} is {text!r}; expected positive integers separated by commas.")
    return _distinct(numbers, option)
