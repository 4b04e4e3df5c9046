"""Layers that are damaged or mislabelled end in one sentence: which tensor, what is wrong, what was expected."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from tests.quant.some_codes import LAYER, some_codes, stored
from torch import Tensor

from quantgate_engine.errors import ModelError
from quantgate_engine.quant.formats.awq import AwqStorage, write_awq
from quantgate_engine.quant.formats.bnb4 import Bnb4Storage, quantize_bnb4, write_bnb4
from quantgate_engine.quant.formats.compressed_tensors import IntStorage, PackedStorage, write_int, write_packed
from quantgate_engine.quant.formats.gptq import GptqStorage, write_gptq
from quantgate_engine.quant.formats.storage import Storage

SHAPE = (16, 32)
Tensors = dict[str, Tensor]
NF4_STATE = "weight.quant_state.bitsandbytes__nf4"


CODES = some_codes(*SHAPE, 4, 8)
BNB = quantize_bnb4(torch.randn(SHAPE, generator=torch.Generator().manual_seed(0)), "nf4")
LAYERS: dict[str, tuple[Storage, Tensors]] = {
    "gptq": (GptqStorage(4, 8, symmetric=False), write_gptq(CODES)),
    "awq": (AwqStorage(8), write_awq(CODES)),
    "packed": (PackedStorage(4, 8, symmetric=False), write_packed(CODES)),
    "bytes": (IntStorage(4, 8, symmetric=False), write_int(CODES)),
    "bnb4": (Bnb4Storage(), write_bnb4(BNB, "nf4")),
    "bnb4 nested": (Bnb4Storage(), write_bnb4(BNB, "nf4", nested=True)),
}
OPTIONAL = {"g_idx", "weight_shape", "weight.quant_map"}
NEEDED = [(layer, name) for layer, (_, tensors) in LAYERS.items() for name in tensors if name not in OPTIONAL]
SIZED = [(layer, name) for layer, (_, tensors) in LAYERS.items() for name in tensors if "quant_state" not in name]
SCALES = [(layer, name) for layer, name in NEEDED if "scale" in name or "nested" in name] + [("bnb4", "weight.absmax")]


def message(layer: str, change: Callable[[Tensors], Tensors]) -> str:
    """Of the error that the layer ends in after the change to its tensors."""
    storage, tensors = LAYERS[layer]
    storage.read(stored(dict(tensors)), SHAPE)
    with pytest.raises(ModelError) as error:
        storage.read(stored(change(dict(tensors))), SHAPE)
    text = str(error.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert text.count(". ") == 0, "one sentence"
    return text


@pytest.mark.parametrize(("layer", "name"), NEEDED)
def test_a_missing_tensor(layer: str, name: str) -> None:
    text = message(layer, lambda tensors: {key: value for key, value in tensors.items() if key != name})
    assert text.startswith(f"some/model: tensor {LAYER}.{name} is missing; ")
    assert text.endswith("; fetch or export the model again.")


@pytest.mark.parametrize(("layer", "name"), SIZED)
def test_a_truncated_tensor(layer: str, name: str) -> None:
    text = message(layer, lambda tensors: tensors | {name: tensors[name][:-1]})
    assert text.startswith(f"some/model: tensor {LAYER}.{name} has the shape ") or (
        layer.startswith("bnb4") and text.startswith(f"some/model: tensor {LAYER}.weight holds 255 bytes; ")
    )
    assert "damaged" in text
    assert "16 outputs and 32 inputs" in text


@pytest.mark.parametrize(("layer", "name"), SIZED)
def test_a_tensor_of_another_dtype(layer: str, name: str) -> None:
    text = message(layer, lambda tensors: tensors | {name: tensors[name].double()})
    assert text.startswith(f"some/model: tensor {LAYER}.{name} is stored as float64; ")


@pytest.mark.parametrize(("layer", "name"), SCALES)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_scale_that_is_not_finite(layer: str, name: str, value: float) -> None:
    def change(tensors: Tensors) -> Tensors:
        broken = tensors[name].clone()
        broken.view(-1)[0] = value
        return tensors | {name: broken}

    count = LAYERS[layer][1][name].numel()
    assert f"{LAYER}.{name} holds 1 of {count} values that are NaN or infinite" in message(layer, change)


@pytest.mark.parametrize("layer", ["gptq", "awq", "packed", "bytes"])
def test_the_group_size_of_another_model(layer: str) -> None:
    """Scales are then too few or too many: which of the two is wrong, nobody can say."""
    storage, tensors = LAYERS[layer]
    assert not isinstance(storage, Bnb4Storage)
    other = replace(storage, group_size=16)
    with pytest.raises(ModelError, match=r"has the shape .* groups of 16.* its quantization config is another model's"):
        other.read(stored(tensors), SHAPE)


@pytest.mark.parametrize(("layer", "name"), [("gptq", "g_idx"), ("packed", "weight_g_idx")])
@pytest.mark.parametrize(("place", "group"), [(0, 4), (31, 7), (5, -2)])
def test_a_group_that_does_not_exist(layer: str, name: str, place: int, group: int) -> None:
    def change(tensors: Tensors) -> Tensors:
        groups = torch.arange(32, dtype=torch.int32) // 8
        groups[place] = group
        return tensors | {name: groups}

    text = message(layer, change)
    assert f"{LAYER}.{name} names the group {group}; " in text
    assert "has the groups 0 to 3" in text


@pytest.mark.parametrize(
    ("storage", "name"),
    [
        (GptqStorage(4, 8, symmetric=False, lists_groups=True), "g_idx"),
        (PackedStorage(4, 8, symmetric=False, lists_groups=True), "weight_g_idx"),
    ],
)
def test_a_list_of_groups_that_is_needed(storage: GptqStorage | PackedStorage, name: str) -> None:
    """By the order of activations inputs are spread over the groups; in their own order they would get wrong scales."""
    weight = some_codes(*SHAPE, 4, 8, shuffled=True)
    tensors = write_gptq(weight) if isinstance(storage, GptqStorage) else write_packed(weight)
    assert torch.equal(storage.read(stored(tensors), SHAPE).weight.dequantize(), weight.dequantize())
    with pytest.raises(ModelError, match=rf"\.{name} holds nothing but 0; .* needs the group of each input"):
        storage.read(stored(tensors | {name: torch.zeros(32, dtype=torch.int32)}), SHAPE)
    del tensors[name]
    with pytest.raises(ModelError, match=rf"\.{name} is missing"):
        storage.read(stored(tensors), SHAPE)


def test_one_group_needs_no_list() -> None:
    weight = some_codes(*SHAPE, 4)
    for storage, tensors, name in (
        (GptqStorage(4, -1, symmetric=False, lists_groups=True), write_gptq(weight), "g_idx"),
        (PackedStorage(4, -1, symmetric=False, lists_groups=True), write_packed(weight), "weight_g_idx"),
    ):
        tensors.pop(name, None)
        assert torch.equal(storage.read(stored(tensors), SHAPE).weight.dequantize(), weight.dequantize())


@pytest.mark.parametrize("name", ["weight", "weight_zero_point"])
@pytest.mark.parametrize(("value", "said"), [(8, "to 8; 4 bits hold -8 to 7"), (-9, "from -9 to ")])
def test_a_value_that_the_bits_cannot_hold(name: str, value: int, said: str) -> None:
    def change(tensors: Tensors) -> Tensors:
        broken = tensors[name].clone()
        broken[0, 0] = value
        return tensors | {name: broken}

    text = message("bytes", change)
    assert f"{LAYER}.{name} holds values " in text
    assert said in text


def test_a_shape_that_the_model_does_not_have() -> None:
    text = message("packed", lambda tensors: tensors | {"weight_shape": torch.tensor([16, 31])})
    assert "weight_shape says [16, 31]; config.json calls for [16, 32]" in text


def test_a_column_of_words_that_fits_neither_layout() -> None:
    storage = PackedStorage(3, 8, symmetric=False)
    tensors = write_packed(some_codes(*SHAPE, 3, 8))
    assert tensors["weight_packed"].shape == (16, 3)
    for broken in (torch.zeros(16, 2, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)):
        with pytest.raises(ModelError, match=r"weight_packed has the shape .* needs \[16, 3\]"):
            storage.read(stored(tensors | {"weight_packed": broken}), SHAPE)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (b"{", "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[]", "expected an object"),
        ({}, "field quant_type: it is missing"),
        ({"quant_type": "int4", "blocksize": 64, "shape": [16, 32]}, "field quant_type: expected 'nf4' or 'fp4'"),
        ({"quant_type": "nf4", "blocksize": 0, "shape": [16, 32]}, "field blocksize: expected greater than 0, found 0"),
        ({"quant_type": "nf4", "blocksize": 64, "shape": None}, "field shape: expected"),
        ({"quant_type": "fp4", "blocksize": 64, "shape": [16, 32]}, "says quant_type fp4, against its own name"),
        ({"quant_type": "nf4", "blocksize": 64, "shape": [32, 16]}, "says the shape [32, 16]; config.json calls for"),
        ({"quant_type": "nf4", "blocksize": 64, "shape": [16, 32], "nested_blocksize": 256}, "lacks nested_offset"),
    ],
)
def test_a_quant_state_that_describes_no_such_weight(state: bytes | dict[str, object], said: str) -> None:
    data = state if isinstance(state, bytes) else json.dumps(state).encode()
    text = message("bnb4", lambda tensors: tensors | {NF4_STATE: torch.tensor(list(data), dtype=torch.uint8)})
    assert f"{LAYER}.{NF4_STATE} " in text
    assert said in text


def test_more_bytes_than_the_weight_has() -> None:
    text = message("bnb4", lambda tensors: tensors | {"weight": torch.cat((tensors["weight"], tensors["weight"]))})
    assert f"{LAYER}.weight holds 512 bytes; " in text
    assert "needs 256" in text


def test_a_table_of_the_other_kind() -> None:
    table = write_bnb4(quantize_bnb4(torch.ones(SHAPE), "fp4"), "fp4")["weight.quant_map"]
    text = message("bnb4", lambda tensors: tensors | {"weight.quant_map": table})
    assert "weight.quant_map is not the table of nf4" in text


def test_nested_maxima_without_word_of_them() -> None:
    """Read as they stand, 8-bit codes would be taken for maxima."""
    plain = LAYERS["bnb4"][1][NF4_STATE]
    assert "weight.absmax is stored as uint8" in message("bnb4 nested", lambda tensors: tensors | {NF4_STATE: plain})
