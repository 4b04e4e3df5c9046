"""A model that lies on the grid it is quantized to says so, by every weight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine.tiny_model import save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.quant.export.export_model import Export, export_model
from quantgate_engine.quant.export.forms import FORMS
from quantgate_engine.quant.methods.named_recipes import NAMED_RECIPES
from quantgate_engine.quant.precision import Precision
from quantgate_engine.quant.schemes import find_scheme
from quantgate_engine.quant.source_grid import SourceGrid
from quantgate_kernels.reference.linear import dequantize

HALF_SCALES = Precision(storage=torch.float16, compute=torch.float16)
LAST = "model.layers.2.mlp.down_proj"


def checkpoint(tmp_path: Path, scheme: str) -> ModelFolder:
    source, _ = save_tiny_model(tmp_path / "source")
    save_tiny_tokenizer(tmp_path / "source", vocab_size=257)
    named = NAMED_RECIPES[scheme]
    form = FORMS[named.usual_form]
    export = Export(source, named.recipe, form, None, "1.0", int8_activations=named.int8_activations)
    return export_model(export, tmp_path / "built")


def loaded(folder: ModelFolder, scheme: str | dict[str, str]) -> dict[str, Any]:
    return TorchExecutor.load(folder, scheme, EngineConfig(kernel_set="reference")).info.provenance


@pytest.mark.parametrize("scheme", ["int4-g32", "int4-g64", "int8-w8a16", "int8-w8a8"])
def test_a_checkpoint_quantized_anew_by_its_own_scheme_says_so(scheme: str, tmp_path: Path) -> None:
    assert loaded(checkpoint(tmp_path, scheme), scheme)["load_reproduces_source_grid"] is True


@pytest.mark.parametrize("scheme", ["int4-g32", "int8-w8a8"])
@pytest.mark.parametrize("place", [None, (0, 0), (-1, -1)])
def test_one_weight_off_the_grid_is_enough(scheme: str, place: tuple[int, int] | None, tmp_path: Path) -> None:
    """A folder of floats that were codes once; in the last layer one of them moves by a hundredth of a step."""
    folder, _ = save_tiny_model(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    for name, weight in tensors.items():
        if "proj" in name:
            tensors[name] = dequantize(find_scheme(scheme).quantize(weight, HALF_SCALES))
    if place is not None:
        tensors[f"{LAST}.weight"][place] += 1e-4
    save_file(tensors, path, metadata={"format": "pt"})
    assert loaded(folder, scheme)["load_reproduces_source_grid"] is (place is None)


@pytest.mark.parametrize("row", [0, 1, 2, 257, 258, 599])
def test_every_row_counts(row: int) -> None:
    scheme = find_scheme("int4-g32")
    weight = torch.randn(600, 64, generator=torch.Generator().manual_seed(1))
    weight = dequantize(scheme.quantize(weight, HALF_SCALES))
    grid = SourceGrid()
    grid.look(weight, scheme)
    assert grid.reproduced is True
    weight[row, 40] += 1e-4
    grid.look(weight, scheme)
    assert grid.reproduced is False
    # Once off it stays off, whatever comes.
    grid.look(torch.zeros(4, 64), scheme)
    assert grid.reproduced is False


def test_floats_and_other_grids_are_not_on_it(tmp_path: Path) -> None:
    source, _ = save_tiny_model(tmp_path / "floats")
    assert loaded(source, "int4-g32")["load_reproduces_source_grid"] is False
    folder = checkpoint(tmp_path, "int4-g64")
    assert loaded(folder, "int4-g32")["load_reproduces_source_grid"] is False
    assert loaded(folder, {"default": "int4-g64", "*.down_proj": "int8-w8a16"})["load_reproduces_source_grid"] is False


def test_schemes_that_quantize_nothing_say_nothing(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "int4-g32")
    assert "load_reproduces_source_grid" not in loaded(folder, "fp16")
    assert "load_reproduces_source_grid" not in loaded(folder, "stored")
