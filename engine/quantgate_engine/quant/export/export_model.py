"""Quantizes a model's folder by a recipe and writes it as a checkpoint that others read too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.model.cache import IN_CACHE, DiskWords, appearing_whole, disk_errors_explained, locked
from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.checkpoint_check import read_json_object, tokenizer_files
from quantgate_engine.model.config import DecoderConfig, read_decoder_config
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.model.model_record import RECORD_FILE, has_record, read_record, write_record
from quantgate_engine.model.shard_writer import ShardWriter
from quantgate_engine.quant.calibration.layer_weights import layer_prefix
from quantgate_engine.quant.calibration.quantized_layer import QuantizedLayer, QuantizedLinear
from quantgate_engine.quant.calibration.settings import CalibrationTokens
from quantgate_engine.quant.calibration.walk import CalibrationWalk, embedded, quantize_without_text
from quantgate_engine.quant.export.forms import CheckpointForm, WrittenRecipe
from quantgate_engine.quant.export.layer_store import LayerStore
from quantgate_engine.quant.formats.layer_tensors import LayerTensors
from quantgate_engine.quant.formats.stored_format import read_stored_format, stored_format
from quantgate_engine.quant.grouped_codes import GroupedCodes
from quantgate_engine.quant.methods.group_fit import require_fit
from quantgate_engine.quant.methods.recipe import Recipe

GENERATION_FILE = "generation_config.json"
_LAYERS_KEPT = "finished layers are kept for the next try"
_IN_CACHE = DiskWords(_LAYERS_KEPT, IN_CACHE.choose)
_OF_THE_USER = DiskWords(_LAYERS_KEPT, "choose a place")
Advance = Callable[[int, str], None]
"""Told how many layers are done, and what is being done."""


def ignore_advance(_done: int, _doing: str) -> None:
    """For callers that show nobody anything."""


@dataclass(frozen=True, slots=True)
class Export:
    """What is to be made of `source`. text: None where the recipe needs none. version: of the writer, for the record.

    int8_activations: products with the weights are to round activations to INT8. told: what else the record tells.
    """

    source: ModelFolder
    recipe: Recipe
    form: CheckpointForm
    text: CalibrationTokens | None
    version: str
    int8_activations: bool = False
    told: Mapping[str, Any] = field(default_factory=dict)

    def job(self) -> dict[str, Any]:
        """What decides every tensor; JSON values."""
        return {
            "model_weights_sha256": self.source.weights_sha256,
            "recipe": self.recipe.record(),
            "form": self.form.name,
            "int8_activations": self.int8_activations,
            "calibration_sha256": None if self.text is None else self.text.sha256,
        }


def export_model(export: Export, target: Path, advance: Advance = ignore_advance) -> ModelFolder:
    """Writes the folder `target`, whole or not at all, and returns it. Layers that an earlier run finished are kept.

    Raises ConfigurationError where the recipe fits neither model nor form, or the target is there; ModelError for a
    model that cannot be read; RunError where the disk is full.
    """
    require_free(target)
    _require_sound(export)
    with locked(target, words=_OF_THE_USER):
        # Another process may have written there while this one waited.
        require_free(target)
        _export(export, target, advance, _OF_THE_USER)
    return read_record(target)


def exported_once(export: Export, target: Path, advance: Advance = ignore_advance) -> ModelFolder:
    """As `export_model`, but a checkpoint that is there is taken; of processes that come at once, one makes it.

    target: of this export and of no other.
    """
    _require_sound(export)
    if not has_record(target):
        with locked(target, lambda: advance(0, "waiting for another process that does the same")):
            # That one may have made it.
            if not has_record(target):
                _require_no_remains(target)
                _export(export, target, advance, _IN_CACHE)
    return read_record(target)


def require_possible(source: ModelFolder, recipe: Recipe) -> None:
    """Raises ConfigurationError where the model's weights are codes already, or the recipe's groups do not fit them."""
    if read_stored_format(source.path) is not None:
        raise ConfigurationError(
            f"{source.path}: this model is quantized already; quantize the model that it was made from."
        )
    require_fit(recipe, read_decoder_config(source.path).linear_layers())


def _require_sound(export: Export) -> None:
    require_possible(export.source, export.recipe)
    if export.recipe.needs_text and export.text is None:
        raise ConfigurationError("This recipe needs calibration text.")
    require_form(export.form, export.recipe, int8_activations=export.int8_activations)


def require_form(form: CheckpointForm, recipe: Recipe, *, int8_activations: bool) -> None:
    """Raises ConfigurationError where checkpoints of that form cannot say what the recipe makes."""
    form.writer(recipe, int8_activations=int8_activations)


def require_free(target: Path) -> None:
    """Raises ConfigurationError where something is there."""
    if target.exists():
        raise ConfigurationError(f"{target}: something is there already; choose another place, or delete it first.")


def _require_no_remains(target: Path) -> None:
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ConfigurationError(
            f"{target}: this is no whole checkpoint, as its record ({RECORD_FILE}) is missing; remove it, and it is "
            "made again."
        )


def _export(export: Export, target: Path, advance: Advance, words: DiskWords) -> None:
    config = read_decoder_config(export.source.path)
    with disk_errors_explained(target, words=words):
        store = LayerStore(target, export.job())
        with Checkpoint(export.source.path) as checkpoint:
            _finish_layers(export, config, checkpoint, store, advance)
            with appearing_whole(target, words) as folder:
                advance(config.num_layers, "writing the folder")
                _write_folder(export, config, checkpoint, store, folder)
    store.remove()


def _finish_layers(
    export: Export, config: DecoderConfig, checkpoint: Checkpoint, store: LayerStore, advance: Advance
) -> None:
    done = store.finished()
    if done >= config.num_layers:
        return
    walk = None
    if export.text is not None and export.recipe.needs_text:
        hidden = embedded(checkpoint, config, export.text.token_ids)
        walk = CalibrationWalk(checkpoint, config, export.recipe, hidden)
        for index in range(done):
            advance(index, f"passing finished layer {index}")
            walk.replay_next(_stored_layer(export, config, store, index))
    for index in range(done, config.num_layers):
        advance(index, f"layer {index}")
        layer = (
            quantize_without_text(checkpoint, config, export.recipe, index) if walk is None else walk.quantize_next()
        )
        store.add(index, _tensors(export, checkpoint, layer), _told(layer))


def _tensors(export: Export, checkpoint: Checkpoint, layer: QuantizedLayer) -> dict[str, Tensor]:
    """By their names in the checkpoint; what folding changed, in the dtype that it had."""
    prefix = layer_prefix(layer.index)
    tensors = {
        f"{prefix}{name}": values.to(checkpoint.stored(f"{prefix}{name}").dtype)
        for name, values in layer.floats.items()
    }
    write = export.form.writer(export.recipe, int8_activations=export.int8_activations)
    for name, linear in layer.linears.items():
        tensors |= {f"{prefix}{name}.{part}": tensor.contiguous() for part, tensor in write(linear.codes).items()}
    return tensors


def _told(layer: QuantizedLayer) -> dict[str, Any]:
    return {
        "linears": {
            name: {
                "shape": list(linear.codes.shape),
                "weight_error": linear.weight_error,
                "output_error": linear.output_error,
                "lists_groups": linear.codes.group_of_input is not None,
            }
            for name, linear in layer.linears.items()
        },
        "floats": sorted(layer.floats),
    }


def _stored_layer(export: Export, config: DecoderConfig, store: LayerStore, index: int) -> QuantizedLayer:
    """A finished layer, read as any reader of the checkpoint would."""
    prefix, told = layer_prefix(index), store.told(index)
    tensors = {name.removeprefix(prefix): tensor for name, tensor in store.tensors(index)}
    written = _written(export, config, [told])
    layers = stored_format(export.form.quantization_config(written, export.version), str(store.folder))
    linears: dict[str, QuantizedLinear] = {}
    for name, known in told["linears"].items():
        storage = layers.storage(f"{prefix}{name}")
        assert storage is not None
        own = {part: tensors[f"{name}.{part}"] for part in storage.tensor_names if f"{name}.{part}" in tensors}
        codes = storage.read(LayerTensors(str(store.folder), f"{prefix}{name}", own), tuple(known["shape"])).weight
        assert isinstance(codes, GroupedCodes)
        linears[name] = QuantizedLinear(codes, known["weight_error"], known["output_error"])
    return QuantizedLayer(index, linears, {name: tensors[name].float() for name in told["floats"]})


def _written(export: Export, config: DecoderConfig, told: Sequence[Mapping[str, Any]]) -> WrittenRecipe:
    lists_groups = any(linear["lists_groups"] for layer in told for linear in layer["linears"].values())
    return WrittenRecipe(export.recipe, config.linear_layers(), export.int8_activations, lists_groups)


def _write_folder(
    export: Export, config: DecoderConfig, checkpoint: Checkpoint, store: LayerStore, folder: Path
) -> None:
    told = [store.told(index) for index in range(config.num_layers)]
    layers = [f"{layer_prefix(index)}{name}" for index, layer in enumerate(told) for name in layer["linears"]]
    changed = {f"{layer_prefix(index)}{name}" for index, layer in enumerate(told) for name in layer["floats"]}
    replaced = changed | {f"{layer}.weight" for layer in layers}
    writer = ShardWriter(folder)
    for name in checkpoint.names:
        if name not in replaced:
            writer.add(name, checkpoint.stored(name))
    for index in range(config.num_layers):
        for name, tensor in store.tensors(index):
            writer.add(name, tensor)
    writer.finish()
    for path in tokenizer_files(export.source.path):
        shutil.copyfile(path, folder / path.name)
    generation = export.source.path / GENERATION_FILE
    if generation.is_file():
        shutil.copyfile(generation, folder / GENERATION_FILE)
    written = _written(export, config, told)
    quantization = export.form.quantization_config(written, export.version)
    stated = read_json_object(export.source.path / "config.json", "a model folder needs one")
    _write_json(folder / "config.json", {**stated, "quantization_config": quantization})
    if export.form.own_file is not None:
        _write_json(folder / export.form.own_file, quantization)
    write_record(folder, folder_name(export), _provenance(export, told))


def folder_name(export: Export) -> str:
    return f"{export.source.name}-{export.form.name}"


def _provenance(export: Export, told: list[dict[str, Any]]) -> dict[str, Any]:
    """reproduces_source_grid: every weight lay on the grid before, so that a comparison says nothing of rounding."""
    linears = [linear for layer in told for linear in layer["linears"].values()]
    outputs = [linear["output_error"] for linear in linears if linear["output_error"] is not None]
    return {
        "source": "quantized",
        "model": export.source.name,
        "model_provenance": export.source.provenance,
        **export.told,
        **export.job(),
        "version": export.version,
        "torch": torch.__version__,
        "reproduces_source_grid": all(linear["weight_error"] == 0 for linear in linears),
        "mean_weight_error": sum(linear["weight_error"] for linear in linears) / len(linears),
        "mean_output_error": sum(outputs) / len(outputs) if outputs else None,
    }


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
