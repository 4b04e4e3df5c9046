"""`quantgate quantize`: a quantized checkpoint in a standard format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from quantgate.progress import ProgressReporter

QUANTIZE_SCHEMA = "quantgate.quantize/1"


def quantize(
    model: Annotated[str, typer.Argument(help="Known name, Hugging Face folder or id, or GGUF file.")],
    scheme: Annotated[
        str,
        typer.Option(help="How: int4-g64-gptq, int4-g128-awq, int4-g64-asym, int8-w8a8-smooth, ... (see docs)."),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write; it must not be there yet.")],
    form: Annotated[
        str | None,
        typer.Option("--format", help="gptq or compressed-tensors; by default what the scheme is usually stored in."),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="Calibration text of your own (UTF-8), in place of Python's documentation and library."),
    ] = None,
    sequences: Annotated[int, typer.Option(min=1, help="Calibration sequences.")] = 64,
    tokens: Annotated[int, typer.Option(min=1, help="Tokens of each.")] = 512,
    seed: Annotated[int, typer.Option(min=0, help="Which parts of the text are drawn.")] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Quantize a model and write it as a checkpoint that vLLM, transformers and quantgate read.

    Layer by layer: a run that was broken off goes on where it was when the same command is given again.

    Example: quantgate quantize smollm2-135m-instruct --scheme int4-g64-gptq --out smollm2-gptq
    """
    from quantgate.quantizing.quantize_model import QuantizeSettings, quantize_model, summary
    from quantgate_engine.quant.calibration.settings import CalibrationSettings

    calibration = CalibrationSettings(sequences=sequences, tokens=tokens, seed=seed)
    settings = QuantizeSettings(model, scheme, out, form, tuple(text or ()), calibration)
    written = summary(quantize_model(settings, ProgressReporter(Console(stderr=True))))
    if json_output:
        typer.echo(json.dumps({"schema": QUANTIZE_SCHEMA, **written}, indent=2))
        return
    output_error = written["mean_output_error"]
    errors = f"mean error of weights {written['mean_weight_error']:.4f}"
    if output_error is not None:
        errors += f", of layers' outputs on the calibration text {output_error:.4f}"
    typer.echo(f"{written['path']}: {written['bytes'] / 1e6:.1f} MB as {written['form']}; {errors}")
    if written["reproduces_source_grid"]:
        typer.echo(
            "Note: every weight lay on this grid already, so that the checkpoint is the model as it was: a comparison "
            "with it says nothing of quantization."
        )
