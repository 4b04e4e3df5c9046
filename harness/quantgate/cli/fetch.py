"""`quantgate fetch`"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from quantgate_engine.model.catalog import ModelFolder, resolve_model
from quantgate_engine.model.known_models import KNOWN_MODELS

FETCH_SCHEMA = "quantgate.fetch/1"

_NAMES_HELP = (
    f"What to fetch: {', '.join(KNOWN_MODELS)}, a Hugging Face Hub id such as owner/name, or a folder or GGUF file, "
    "which is checked (and converted)."
)


def fetch(
    names: Annotated[list[str], typer.Argument(help=_NAMES_HELP, metavar="NAME...")],
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Fetch models into the cache, checked by hash; a model that is there already costs nothing.

    The cache is $QUANTGATE_CACHE, else ~/.cache/quantgate.

    Example: quantgate fetch smollm2-135m-instruct
    """
    progress = Console(stderr=True)
    models = [resolve_model(name, progress=lambda message: _tell(progress, message)) for name in names]
    if json_output:
        typer.echo(json.dumps({"schema": FETCH_SCHEMA, "models": [_described(model) for model in models]}, indent=2))
        return
    for model in models:
        typer.echo(f"{model.name}: {model.path} (weights {model.weights_sha256[:12]})")


def _tell(console: Console, message: str) -> None:
    console.print(message, markup=False, highlight=False, soft_wrap=True)


def _described(model: ModelFolder) -> dict[str, Any]:
    return {
        "name": model.name,
        "path": str(model.path),
        "weights_sha256": model.weights_sha256,
        "tokenizer_sha256": model.tokenizer_sha256,
        "provenance": model.provenance,
    }
