"""The checkpoint that a scheme's recipe makes of a model: once, in the cache, before the model is loaded from it."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from quantgate_engine.errors import RunError
from quantgate_engine.executor.compute_thread import on_compute_thread
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.hashing import text_sha256
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.model.model_record import has_record, read_record
from quantgate_engine.model.tokenizer import load_tokenizer
from quantgate_engine.preparation import Preparation, PreparationProgress
from quantgate_engine.quant.calibration.known_text import KnownText
from quantgate_engine.quant.calibration.passages import passages_sha256
from quantgate_engine.quant.calibration.settings import CalibrationSettings, CalibrationTokens
from quantgate_engine.quant.calibration.text import draw_tokens
from quantgate_engine.quant.export.export_model import Export, exported_once, require_possible
from quantgate_engine.quant.export.forms import FORMS
from quantgate_engine.quant.methods.named_recipes import NamedRecipe, named_recipe
from quantgate_engine.quant.scheme_text import SchemeChoice, scheme_text
from quantgate_engine.quant.schemes import PREPARED_SCHEMES
from quantgate_kernels.cache_root import cache_root

_FOLDER = "quantized"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def is_prepared(scheme: SchemeChoice | None) -> bool:
    """Whether a model is quantized by a recipe before it is loaded under this scheme."""
    return scheme is not None and scheme_text(scheme) in PREPARED_SCHEMES


def require_preparable(source: ModelFolder, scheme: SchemeChoice | None) -> None:
    """Takes no time. Raises ConfigurationError where the model is quantized already, or groups do not fit its rows."""
    if scheme is not None and is_prepared(scheme):
        require_possible(source, _recipe(scheme, Preparation()).recipe)


def prepared_model(source: ModelFolder, scheme: SchemeChoice | None, preparation: Preparation) -> ModelFolder:
    """What to load under the scheme: the source itself, but for schemes that are prepared.

    A checkpoint is one of a model's weights, a recipe, a calibration text, the text that this was kept apart from, and
    a version of quantgate. Several processes may ask at once; what an interrupted one has finished of it is taken up.

    Raises ConfigurationError where the recipe does not fit the model, RunError where the disk is full.
    """
    if scheme is None or not is_prepared(scheme):
        return source
    named = _recipe(scheme, preparation)
    require_possible(source, named.recipe)
    forbidden = preparation.forbidden_passages()
    forbidden_sha256 = passages_sha256(forbidden)
    known_text = KnownText(source.tokenizer_sha256, named.recipe.calibration, forbidden_sha256)
    build = _Build(source, named, forbidden_sha256)
    known_sha256 = known_text.sha256(cache_root())
    if known_sha256 is None or not has_record(build.target(known_sha256)):
        text = _text(str(source.path), source.tokenizer_sha256, named.recipe.calibration, forbidden)
        known_text.remember(cache_root(), text.sha256)
        made = _made(build.export(text), build.target(text.sha256), preparation.progress)
    else:
        made = read_record(build.target(known_sha256))
    # Users and requests know the model by its own name, whatever the precision.
    return replace(made, name=source.name)


@dataclass(frozen=True, slots=True)
class _Build:
    source: ModelFolder
    named: NamedRecipe
    forbidden_sha256: str | None

    def export(self, text: CalibrationTokens) -> Export:
        told = {"scheme": self.named.name, "forbidden_sha256": self.forbidden_sha256}
        form = FORMS[self.named.usual_form]
        int8 = self.named.int8_activations
        return Export(self.source, self.named.recipe, form, text, version("quantgate"), int8, told)

    def target(self, calibration_sha256: str) -> Path:
        decisive = {
            "weights": self.source.weights_sha256,
            "tokenizer": self.source.tokenizer_sha256,
            "scheme": self.named.name,
            "recipe": self.named.recipe.record(),
            "calibration": calibration_sha256,
            "forbidden": self.forbidden_sha256,
            "version": version("quantgate"),
        }
        key = text_sha256([json.dumps(decisive, sort_keys=True)])
        name = _UNSAFE.sub("-", self.source.name)
        return cache_root() / _FOLDER / f"{name}-{self.named.name}-{key[:16]}"


def _recipe(scheme: SchemeChoice, preparation: Preparation) -> NamedRecipe:
    return named_recipe(scheme_text(scheme), preparation.calibration or CalibrationSettings())


@lru_cache(maxsize=4)
def _text(
    folder: str, _tokenizer_sha256: str, calibration: CalibrationSettings, forbidden: frozenset[str]
) -> CalibrationTokens:
    """Takes a second; arms of one model, and the loading behind the preparation, draw the same."""
    tokenizer = load_tokenizer(folder)

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    return draw_tokens(encode, calibration, forbidden)


def _made(export: Export, target: Path, progress: PreparationProgress) -> ModelFolder:
    """On the thread that will compute: threads of torch that another one had would slow every later step."""
    if has_record(target):
        return read_record(target)
    left = threading.Event()
    layers = read_decoder_config(export.source.path).num_layers
    with progress.phase("quantize", layers) as advance:

        def tell(done: int, doing: str) -> None:
            if left.is_set():
                raise RunError("The preparation was interrupted.")
            advance(done, f"{export.told['scheme']}, {doing}")

        try:
            return on_compute_thread(lambda: exported_once(export, target, tell))
        finally:
            # An interrupt comes out at once, and what goes on behind it ends with the running layer.
            left.set()
