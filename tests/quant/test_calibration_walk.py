from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.against_transformers import random_tokens
from tests.engine.test_numerics_families import FAMILIES
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.quant.calibration.quantized_layer import QuantizedLayer
from quantgate_engine.quant.calibration.walk import CalibrationWalk, embedded, quantize_without_text
from quantgate_engine.quant.methods.awq import AwqOptions
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.recipe import Folding, GridException, Recipe, Rounding
from quantgate_engine.quant.methods.rounding import round_to_nearest

WINDOWS: dict[str, dict[str, Any]] = {
    "qwen2, some windows": {
        "model_type": "qwen2", "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1,
    },
    "qwen3, yarn": {
        "model_type": "qwen3", "head_dim": 32,
        "rope_parameters": {
            "rope_type": "yarn", "factor": 4.0, "rope_theta": 10_000.0, "original_max_position_embeddings": 128,
        },
    },
}  # fmt: skip
TEXT = torch.tensor([random_tokens(40, seed=seed) for seed in range(6)])
GRID = Grid(bits=4, group_size=16)


def walk_through(folder: Path, recipe: Recipe, text: torch.Tensor = TEXT) -> tuple[list[QuantizedLayer], torch.Tensor]:
    config = read_decoder_config(folder)
    with Checkpoint(folder) as checkpoint:
        walk = CalibrationWalk(checkpoint, config, recipe, embedded(checkpoint, config, text))
        layers = [walk.quantize_next() for _ in range(config.num_layers)]
    return layers, walk.hidden


def put_into_transformers(model: Any, layers: list[QuantizedLayer]) -> None:
    with torch.no_grad():
        for layer in layers:
            prefix = f"model.layers.{layer.index}."
            for name, linear in layer.linears.items():
                model.get_parameter(f"{prefix}{name}.weight").copy_(linear.codes.dequantize())
            for name, tensor in layer.floats.items():
                model.get_parameter(prefix + name).copy_(tensor)


def hidden_of_transformers(model: Any, text: torch.Tensor) -> torch.Tensor:
    """Before the final norm."""
    found: list[torch.Tensor] = []
    hook = model.model.norm.register_forward_pre_hook(lambda _module, inputs: found.append(inputs[0]))
    with torch.no_grad():
        model(text)
    hook.remove()
    return found[0]


@pytest.mark.parametrize("family", [*FAMILIES, *WINDOWS])
def test_hidden_states_are_those_of_the_quantized_model(family: str, tmp_path: Path) -> None:
    """Of every family: the walk ends where transformers does with the weights that it stored."""
    _, model = save_tiny_model(tmp_path, **(FAMILIES | WINDOWS)[family])
    plain = hidden_of_transformers(model, TEXT)
    layers, hidden = walk_through(tmp_path, Recipe(grid=GRID))
    put_into_transformers(model, layers)
    expected = hidden_of_transformers(model, TEXT)
    torch.testing.assert_close(hidden, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
    assert not torch.allclose(plain, expected, rtol=1e-2)


@pytest.mark.parametrize("rounding", ["nearest", "gptq"])
@pytest.mark.parametrize("folding", ["none", "awq", "smoothquant"])
def test_every_method_ends_where_its_stored_weights_do(rounding: Rounding, folding: Folding, tmp_path: Path) -> None:
    _, model = save_tiny_model(tmp_path, attention_bias=True, mlp_bias=True)
    layers, hidden = walk_through(
        tmp_path, Recipe(rounding=rounding, folding=folding, grid=GRID, awq=AwqOptions(steps=4))
    )
    put_into_transformers(model, layers)
    expected = hidden_of_transformers(model, TEXT)
    torch.testing.assert_close(hidden, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
    folded = {"none": 0, "smoothquant": 2, "awq": 4}[folding]  # two norms, and the biases of values and up
    assert all(len(layer.floats) == folded for layer in layers)
    assert all(linear.output_error for layer in layers for linear in layer.linears.values())


def test_gptq_brings_the_outputs_of_layers_closer_than_nearest(tmp_path: Path) -> None:
    save_tiny_model(tmp_path)
    errors = []
    for rounding in ("gptq", "nearest"):
        layers, _ = walk_through(tmp_path, Recipe(rounding=rounding, grid=GRID))  # type: ignore[arg-type]
        errors.append({name: linear.output_error or 0.0 for name, linear in layers[0].linears.items()})
    assert all(errors[0][name] < errors[1][name] for name in errors[0])


@pytest.mark.parametrize("stored", [1, 2])
def test_a_walk_that_was_broken_off_ends_as_one_that_was_not(stored: int, tmp_path: Path) -> None:
    save_tiny_model(tmp_path)
    config, recipe = read_decoder_config(tmp_path), Recipe(folding="awq", grid=GRID, awq=AwqOptions(steps=3))
    whole, hidden = walk_through(tmp_path, recipe)
    with Checkpoint(tmp_path) as checkpoint:
        walk = CalibrationWalk(checkpoint, config, recipe, embedded(checkpoint, config, TEXT))
        for layer in whole[:stored]:
            walk.replay_next(layer)
        kept = walk.hidden.clone()
        rest = [walk.quantize_next() for _ in range(config.num_layers - stored)]
        from_hidden = CalibrationWalk(checkpoint, config, recipe, kept, next_layer=stored).quantize_next()
    for expected, found in [*zip(whole[stored:], rest, strict=True), (whole[stored], from_hidden)]:
        assert found.index == expected.index
        for name, linear in expected.linears.items():
            assert torch.equal(found.linears[name].codes.codes, linear.codes.codes)
            assert torch.equal(found.linears[name].codes.scales, linear.codes.scales)
    torch.testing.assert_close(walk.hidden, hidden)


def test_layers_with_a_grid_of_their_own_and_layers_left_alone(tmp_path: Path) -> None:
    _, model = save_tiny_model(tmp_path)
    recipe = Recipe(
        folding="awq",
        grid=GRID,
        exceptions=(
            GridException("model.layers.1.*", None),
            GridException("*.up_proj", None),
            GridException("*.down_proj", Grid(bits=8, group_size=None)),
        ),
        awq=AwqOptions(steps=3),
    )
    layers, hidden = walk_through(tmp_path, recipe)
    assert (layers[1].linears, layers[1].floats) == ({}, {})
    assert layers[0].linears["mlp.down_proj"].codes.bits == 8
    assert layers[0].linears["self_attn.q_proj"].codes.bits == 4
    # The layer before a folded one is stored with its rows divided, though it stays a float.
    assert "mlp.up_proj" not in layers[0].linears
    assert "mlp.up_proj.weight" in layers[0].floats
    put_into_transformers(model, layers)
    expected = hidden_of_transformers(model, TEXT)
    torch.testing.assert_close(hidden, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


def test_progress_is_told_layer_by_layer_and_name_by_name(tmp_path: Path) -> None:
    save_tiny_model(tmp_path)
    config, told = read_decoder_config(tmp_path), list[str]()
    with Checkpoint(tmp_path) as checkpoint:
        walk = CalibrationWalk(checkpoint, config, Recipe(grid=GRID), embedded(checkpoint, config, TEXT))
        walk.quantize_next(told.append)
        assert walk.next_layer == 1
    kinds = ["self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o", "mlp.gate", "mlp.up", "mlp.down"]
    assert told == [f"model.layers.0.{kind}_proj" for kind in kinds]


def test_plain_rounding_reads_no_text(tmp_path: Path) -> None:
    save_tiny_model(tmp_path)
    config, recipe = read_decoder_config(tmp_path), Recipe(rounding="nearest", grid=GRID)
    with Checkpoint(tmp_path) as checkpoint:
        layer = quantize_without_text(checkpoint, config, recipe, 2)
        weight = checkpoint.take("model.layers.2.mlp.up_proj.weight", (config.ffn_size, config.hidden_size))
    found = layer.linears["mlp.up_proj"]
    assert torch.equal(found.codes.codes, round_to_nearest(weight, GRID).codes)
    assert found.output_error is None
    assert 0.05 < found.weight_error < 0.2


def test_a_weight_that_carries_the_grid_already_is_told_by_an_error_of_zero(tmp_path: Path) -> None:
    _, model = save_tiny_model(tmp_path)
    config, recipe = read_decoder_config(tmp_path), Recipe(rounding="nearest", grid=GRID)
    with Checkpoint(tmp_path) as checkpoint:
        layers = [quantize_without_text(checkpoint, config, recipe, index) for index in range(config.num_layers)]
    put_into_transformers(model, layers)
    again = tmp_path / "again"
    model.save_pretrained(again)
    with Checkpoint(again) as checkpoint:
        layer = quantize_without_text(checkpoint, config, recipe, 0)
    assert all(linear.weight_error == 0 for linear in layer.linears.values())


@pytest.mark.parametrize("rounding", ["nearest", "gptq"])
def test_a_weight_whose_scales_overflow_is_named(rounding: Rounding, tmp_path: Path) -> None:
    _, model = save_tiny_model(tmp_path)
    with torch.no_grad():
        model.model.layers[1].self_attn.o_proj.weight[3, 5] = 1e7
    model.save_pretrained(tmp_path)
    with pytest.raises(ConfigurationError, match=r"^model\.layers\.1\.self_attn\.o_proj: A scale does not fit float16"):
        walk_through(tmp_path, Recipe(rounding=rounding, grid=GRID))


def test_gptq_without_text_is_refused(tmp_path: Path) -> None:
    save_tiny_model(tmp_path)
    with Checkpoint(tmp_path) as checkpoint, pytest.raises(ConfigurationError, match="GPTQ needs calibration text"):
        quantize_without_text(checkpoint, read_decoder_config(tmp_path), Recipe(grid=GRID), 0)
