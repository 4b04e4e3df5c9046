"""A model's folder quantized by a named recipe, on text that no evaluation of quantgate's uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from quantgate.progress import ProgressReporter
from quantgate.quantizing.evaluation_passages import evaluation_passages
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.model.tokenizer import load_tokenizer
from quantgate_engine.quant.calibration.passages import passages_sha256
from quantgate_engine.quant.calibration.settings import CalibrationSettings, CalibrationTokens
from quantgate_engine.quant.calibration.text import draw_tokens
from quantgate_engine.quant.export.export_model import (
    Export,
    export_model,
    require_form,
    require_free,
    require_possible,
)
from quantgate_engine.quant.export.forms import FORMS
from quantgate_engine.quant.methods.named_recipes import NamedRecipe, named_recipe


@dataclass(frozen=True, slots=True)
class QuantizeSettings:
    """form: `gptq` or `compressed-tensors`; None takes what the scheme needs. texts: files of the user's own."""

    model: str
    scheme: str
    target: Path
    form: str | None = None
    texts: Sequence[Path] = ()
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)


def quantize_model(settings: QuantizeSettings, progress: ProgressReporter) -> ModelFolder:
    """Writes the checkpoint, whole or not at all, and returns it.

    Raises ConfigurationError, ModelError or RunError: see `export_model`.
    """
    named = named_recipe(settings.scheme, settings.calibration)
    form = settings.form or named.usual_form
    if form not in FORMS:
        raise ConfigurationError(f"--format is {form!r}; expected one of {', '.join(FORMS)}.")
    own = [_text(path) for path in settings.texts]
    require_free(settings.target)
    require_form(FORMS[form], named.recipe, int8_activations=named.int8_activations)
    source = resolve_model(settings.model, progress=progress.note)
    require_possible(source, named.recipe)
    layers = read_decoder_config(source.path).num_layers
    text = _calibration(named, source, own, progress)
    told = {"scheme": named.name, "forbidden_sha256": passages_sha256(evaluation_passages()) if text else None}
    export = Export(source, named.recipe, FORMS[form], text, version("quantgate"), named.int8_activations, told)
    with progress.phase("quantize", layers) as advance:
        return export_model(export, settings.target, lambda done, doing: advance(done, doing))


def summary(folder: ModelFolder) -> dict[str, Any]:
    """What was written, for people and programs."""
    provenance = folder.provenance
    return {
        "path": str(folder.path),
        "weights_sha256": folder.weights_sha256,
        "bytes": sum(path.stat().st_size for path in folder.path.glob("*.safetensors")),
        "form": provenance["form"],
        "recipe": provenance["recipe"],
        "mean_weight_error": provenance["mean_weight_error"],
        "mean_output_error": provenance["mean_output_error"],
        "reproduces_source_grid": provenance["reproduces_source_grid"],
    }


def _calibration(
    named: NamedRecipe, source: ModelFolder, own: Sequence[str], progress: ProgressReporter
) -> CalibrationTokens | None:
    if not named.recipe.needs_text:
        if own:
            raise ConfigurationError(
                f"Scheme {named.name} rounds each weight by itself and reads no text; leave --text out, or take one "
                f"that does, such as {named.name}-gptq."
            )
        return None
    progress.note("drawing calibration text")
    tokenizer = load_tokenizer(str(source.path))

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    return draw_tokens(encode, named.recipe.calibration, evaluation_passages(), own)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigurationError(
            f"{path}: this calibration text cannot be read ({reason}); give a text file."
        ) from error
