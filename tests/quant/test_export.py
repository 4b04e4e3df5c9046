"""Quantized checkpoints that are written here: this engine and transformers read what the codes stand for."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tests.engine.against_transformers import divergence, expected_logits, random_tokens
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.tiny_model import save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.linear_layers import float_weight
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.model.shard_writer import save_tensors
from quantgate_engine.model.stored_layers import StoredLayers
from quantgate_engine.quant.calibration.settings import CalibrationTokens
from quantgate_engine.quant.export import layer_store
from quantgate_engine.quant.export.export_model import Export, export_model
from quantgate_engine.quant.export.forms import FORMS
from quantgate_engine.quant.methods.gptq import GptqOptions
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.recipe import GridException, Recipe

TEXT = CalibrationTokens(torch.randint(3, 257, (6, 40), generator=torch.Generator().manual_seed(5)), "text")
TOKENS = random_tokens(40)
NEAREST = Recipe(rounding="nearest", grid=Grid(4, 32))
RECIPES: dict[str, tuple[Recipe, str, bool]] = {
    "nearest": (NEAREST, "gptq", False),
    "nearest, zeros": (Recipe(rounding="nearest", grid=Grid(4, 32, symmetric=False)), "gptq", False),
    "gptq": (Recipe(grid=Grid(4, 64)), "gptq", False),
    "gptq, groups by activity": (Recipe(grid=Grid(4, 32), gptq=GptqOptions(static_groups=False)), "gptq", False),
    "awq": (Recipe(rounding="nearest", folding="awq", grid=Grid(4, 32, symmetric=False)), "compressed-tensors", False),
    "packed, groups by activity": (
        Recipe(grid=Grid(4, 32), gptq=GptqOptions(static_groups=False)), "compressed-tensors", False,
    ),
    "smoothquant": (Recipe(rounding="nearest", folding="smoothquant", grid=Grid(8, None)), "compressed-tensors", True),
    "mixed": (
        Recipe(
            rounding="nearest",
            grid=Grid(4, 32),
            exceptions=(GridException("*.down_proj", Grid(8, 32)), GridException("model.layers.0.*", None)),
        ),
        "gptq",
        False,
    ),
    "mixed, packed": (
        Recipe(
            rounding="nearest",
            grid=Grid(4, 32),
            exceptions=(GridException("*.down_proj", Grid(8, None)), GridException("model.layers.0.*", None)),
        ),
        "compressed-tensors",
        False,
    ),
}  # fmt: skip


def source(folder: Path, **changes: Any) -> tuple[ModelFolder, Any]:
    saved, model = save_tiny_model(folder, **changes)
    save_tiny_tokenizer(folder, vocab_size=257)
    return saved, model


def exported(case: str, tmp_path: Path) -> tuple[ModelFolder, Any]:
    """-> the folder, and transformers' float model that its codes stand for."""
    recipe, form, int8 = RECIPES[case]
    saved, model = source(tmp_path / "source")
    folder = export_model(Export(saved, recipe, FORMS[form], TEXT, "1.0", int8_activations=int8), tmp_path / "out")
    stored, config = StoredLayers.of(folder.path), read_decoder_config(folder.path)
    with Checkpoint(folder.path) as checkpoint, torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.removesuffix(".weight") in config.linear_layers():
                values = float_weight(checkpoint, stored, name.removesuffix(".weight"), tuple(parameter.shape))
            else:
                values = checkpoint.take(name, tuple(parameter.shape))
            parameter.copy_(values)
    return folder, model


@pytest.mark.parametrize("case", [case for case in RECIPES if case != "smoothquant"])
def test_the_engine_computes_what_was_written(case: str, tmp_path: Path) -> None:
    folder, model = exported(case, tmp_path)
    for kernel_set in NAMED_SETS:
        executor = TorchExecutor.load(folder, None, EngineConfig(kernel_set=runnable(kernel_set)))
        assert executor.info.scheme == "stored"
        assert divergence(expected_logits(model, TOKENS), executor.logits(TOKENS)) < 2e-3


@pytest.mark.parametrize(("symmetric", "convention", "stored_zero"), [(True, "gptq", 7), (False, "gptq_v2", 8)])
def test_zeros_that_differ_are_stored_as_they_are(
    symmetric: bool, convention: str, stored_zero: int, tmp_path: Path
) -> None:
    """Of rows from -w to w the zero is the middle, 8."""
    saved, model = source(tmp_path / "source")
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, torch.nn.Linear) and layer.weight.shape[0] != 257:
                layer.weight.copy_(torch.linspace(-8, 7, layer.weight.shape[1]))
    model.save_pretrained(tmp_path / "source")
    recipe = Recipe(rounding="nearest", grid=Grid(4, None, symmetric=symmetric))
    folder = export_model(Export(saved, recipe, FORMS["gptq"], None, "1.0"), tmp_path / "out")
    config = json.loads((folder.path / "quantize_config.json").read_text())
    assert (config["checkpoint_format"], config["sym"]) == (convention, symmetric)
    with Checkpoint(folder.path) as checkpoint:
        words = checkpoint.stored("model.layers.0.mlp.down_proj.qzeros")
    assert set((words & 15).flatten().tolist()) == {stored_zero}


def test_smoothed_weights_meet_int8_activations(tmp_path: Path) -> None:
    folder, model = exported("smoothquant", tmp_path)
    _, floats = source(tmp_path / "floats")
    assert divergence(expected_logits(floats, TOKENS), expected_logits(model, TOKENS)) < 0.01
    executor = TorchExecutor.load(folder, None, EngineConfig(kernel_set="reference"))
    assert executor.info.compute_dtype.endswith("linear layers int8")
    assert divergence(expected_logits(model, TOKENS), executor.logits(TOKENS)) < 0.02


def test_gptq_fits_the_text_better_than_rounding(tmp_path: Path) -> None:
    saved, _ = source(tmp_path / "source")
    errors = {}
    for rounding in ("nearest", "gptq"):
        recipe = Recipe(rounding=rounding, grid=Grid(4, 32))
        folder = export_model(Export(saved, recipe, FORMS["gptq"], TEXT, "1.0"), tmp_path / rounding)
        errors[rounding] = folder.provenance["mean_output_error"]
        assert not folder.provenance["reproduces_source_grid"]
    # Of an output error without text there is nothing to say.
    assert errors["nearest"] is None
    assert errors["gptq"] > 0


def test_a_run_that_was_broken_off_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    saved, _ = source(tmp_path / "source")
    export = Export(saved, Recipe(grid=Grid(4, 32)), FORMS["gptq"], TEXT, "1.0")
    whole = export_model(export, tmp_path / "whole")

    def break_off(done: int, _doing: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    seen: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        export_model(export, tmp_path / "out", break_off)
    assert not (tmp_path / "out").exists()
    resumed = export_model(export, tmp_path / "out", lambda _done, doing: seen.append(doing))
    assert seen == ["passing finished layer 0", "passing finished layer 1", "layer 2", "writing the folder"]
    assert resumed.weights_sha256 == whole.weights_sha256
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["out", "source", "whole"]


def flip_a_bit(folder: Path) -> None:
    path = folder / "layer-00001.safetensors"
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_bit,
        lambda folder: (folder / "layer-00001.json").write_text("{}"),
        lambda folder: (folder / "layer-00001.json").write_text("[]"),
        lambda folder: (folder / "layer-00001.json").unlink(),
        lambda folder: save_file({"x": torch.ones(2)}, folder / "layer-00001.safetensors"),
        lambda folder: (folder / "layer-00001.safetensors").unlink(),
    ],
    ids=["bit", "record of nothing", "record of another kind", "no record", "other tensors", "no tensors"],
)
def test_a_finished_layer_that_was_damaged_is_made_again(damage: Callable[[Path], object], tmp_path: Path) -> None:
    saved, _ = source(tmp_path / "source")
    export = Export(saved, NEAREST, FORMS["gptq"], None, "1.0")
    whole = export_model(export, tmp_path / "whole")

    def break_off(done: int, _doing: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_model(export, tmp_path / "out", break_off)
    damage(tmp_path / ".out.quantizing")
    seen: list[str] = []
    resumed = export_model(export, tmp_path / "out", lambda _done, doing: seen.append(doing))
    assert seen == ["layer 1", "layer 2", "writing the folder"]
    assert resumed.weights_sha256 == whole.weights_sha256


def test_a_full_disk_keeps_finished_layers_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, _ = source(tmp_path / "source")
    export = Export(saved, NEAREST, FORMS["gptq"], None, "1.0")
    written: list[Path] = []

    def save(tensors: dict[str, torch.Tensor], path: Path) -> None:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        written.append(path)
        save_tensors(tensors, path)

    monkeypatch.setattr(layer_store, "save_tensors", save)
    sentence = (
        r"no room on the disk .* and finished layers are kept for the next try; free some space or choose a place"
    )
    with pytest.raises(RunError, match=sentence):
        export_model(export, tmp_path / "out")
    monkeypatch.undo()
    seen: list[str] = []
    export_model(export, tmp_path / "out", lambda _done, doing: seen.append(doing))
    assert seen == ["layer 1", "layer 2", "writing the folder"]


def test_a_place_that_cannot_be_written_asks_for_another_one(tmp_path: Path) -> None:
    saved, _ = source(tmp_path / "source")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"cannot be written .*; choose a place that you may write to"):
        export_model(Export(saved, NEAREST, FORMS["gptq"], None, "1.0"), tmp_path / "file" / "out")


def test_layers_of_another_recipe_are_not_mixed_in(tmp_path: Path) -> None:
    saved, _ = source(tmp_path / "source")

    def break_off(done: int, _doing: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_model(Export(saved, NEAREST, FORMS["gptq"], None, "1.0"), tmp_path / "out", break_off)
    other = Recipe(rounding="nearest", grid=Grid(4, 64))
    with pytest.raises(ConfigurationError, match="another model, recipe, text or form; go on with that one, delete"):
        export_model(Export(saved, other, FORMS["gptq"], None, "1.0"), tmp_path / "out")
    export_model(Export(saved, NEAREST, FORMS["gptq"], None, "1.0"), tmp_path / "out")


def test_a_grid_that_the_model_lies_on_already_is_flagged(tmp_path: Path) -> None:
    saved, model = source(tmp_path / "source")
    recipe = Recipe(rounding="nearest", grid=Grid(8, None))
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, torch.nn.Linear) and layer.weight.shape[0] != 257:
                # Whole numbers up to 127 in every row: on the grid of scale 1.
                layer.weight.copy_(torch.randint(-127, 128, layer.weight.shape))
                layer.weight[:, 0] = 127
    model.save_pretrained(tmp_path / "source")
    folder = export_model(Export(saved, recipe, FORMS["compressed-tensors"], None, "1.0"), tmp_path / "out")
    assert folder.provenance["reproduces_source_grid"]
    assert folder.provenance["mean_weight_error"] == 0


@pytest.mark.parametrize(
    ("export", "words"),
    [
        (
            {"recipe": Recipe(rounding="nearest", grid=Grid(4, 128))},
            "Groups of 128 do not divide the rows of down",
        ),
        ({"recipe": Recipe(), "text": None}, "needs calibration text"),
        ({"int8_activations": True}, "cannot say that activations are rounded to INT8; choose another form"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_is_computed(
    export: dict[str, Any], words: str, tmp_path: Path
) -> None:
    saved, _ = source(tmp_path / "source")
    settings: dict[str, Any] = {"recipe": NEAREST, "form": FORMS["gptq"], "text": TEXT, "version": "1.0", **export}
    with pytest.raises(ConfigurationError, match=words):
        export_model(Export(saved, **settings), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["source"]


def test_a_place_that_is_taken_and_a_model_that_is_quantized_are_refused(tmp_path: Path) -> None:
    saved, _ = source(tmp_path / "source")
    export = Export(saved, NEAREST, FORMS["gptq"], None, "1.0")
    folder = export_model(export, tmp_path / "out")
    with pytest.raises(ConfigurationError, match="something is there already"):
        export_model(export, tmp_path / "out")
    with pytest.raises(ConfigurationError, match="quantized already; quantize the model that it was made from"):
        export_model(Export(folder, NEAREST, FORMS["gptq"], None, "1.0"), tmp_path / "again")


def test_the_folder_says_how_it_was_made(tmp_path: Path) -> None:
    folder, _ = exported("gptq", tmp_path)
    provenance = folder.provenance
    assert provenance["recipe"] == Recipe(grid=Grid(4, 64)).record()
    assert (provenance["form"], provenance["calibration_sha256"], provenance["version"]) == ("gptq", "text", "1.0")
    config = json.loads((folder.path / "config.json").read_text())["quantization_config"]
    assert (config["quant_method"], config["bits"], config["group_size"], config["desc_act"]) == ("gptq", 4, 64, False)
    assert json.loads((folder.path / "quantize_config.json").read_text())["bits"] == 4
