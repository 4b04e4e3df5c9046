"""The step program over weights whose inputs stand in an order of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.own_rows import on_threads
from tests.kernels.reordered_cases import in_order, some_order
from tests.kernels.step_arms import FAMILIES, Model, by_program, cache_of, load_model, play, step_functions
from tests.kernels.step_scripts import LONG, SCRIPTS, Script
from tests.kernels.test_step_program import assert_no_further_off
from torch import Tensor

from quantgate_kernels.cpu.library import load_functions
from quantgate_kernels.layers import DecoderLayer, Projection
from quantgate_kernels.panel_weight import PanelWeight
from quantgate_kernels.types import DenseWeight, Int8ChannelWeight, Int8DynamicWeight, ReorderedWeight

SCHEMES = ("bf16", "int8-w8a16", "int8-w8a8", "int4-g32")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kernel_set_or_skip("cpu")
    return tmp_path_factory.mktemp("checkpoints")


def reordered(model: Model, *, as_it_was: bool = False, in_place: bool = False) -> Model:
    """Each projection in an order of its own. as_it_was: of the same product. in_place: the order that inputs have."""

    def projection(given: Projection, seed: int) -> Projection:
        weight = given.weight
        assert not isinstance(weight, ReorderedWeight | PanelWeight)
        inputs = weight.shape[1]
        order = torch.arange(inputs, dtype=torch.int32) if in_place else some_order(inputs, seed)
        if not as_it_was:
            return Projection(ReorderedWeight(weight, order), given.bias)
        assert isinstance(weight, DenseWeight | Int8ChannelWeight | Int8DynamicWeight)
        return Projection(in_order(weight, order), given.bias)

    def layer(given: DecoderLayer, index: int) -> DecoderLayer:
        return replace(
            given,
            query_key_value=projection(given.query_key_value, 4 * index),
            attention_output=projection(given.attention_output, 4 * index + 1),
            gate_up=projection(given.gate_up, 4 * index + 2),
            down=projection(given.down, 4 * index + 3),
        )

    layers = tuple(layer(given, index) for index, given in enumerate(model.weights.layers))
    return replace(model, weights=replace(model.weights, layers=layers))


def states(model: Model, script: Script) -> list[Tensor]:
    cache = cache_of(model, script.num_blocks, "auto", torch.bfloat16)
    return play(by_program(model, step_functions(load_functions())), script, cache)


def same(found: list[Tensor], expected: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("script", [SCRIPTS["mixed"], LONG], ids=["mixed", "long"])
@pytest.mark.parametrize("family", ["llama, untied, biases", "qwen3"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme(scheme: str, family: str, script: Script, checkpoints: Path) -> None:
    assert_no_further_off(reordered(load_model(checkpoints / family, scheme, **FAMILIES[family])), script)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_inputs_in_order_change_no_bit(scheme: str, checkpoints: Path) -> None:
    model = load_model(checkpoints / "qwen3", scheme, **FAMILIES["qwen3"])
    for script in (SCRIPTS["mixed"], LONG):
        assert same(states(reordered(model, in_place=True), script), states(model, script))


def test_sums_of_codes_are_the_same_bits_in_any_order(checkpoints: Path) -> None:
    model = load_model(checkpoints / "qwen3", "int8-w8a8", **FAMILIES["qwen3"])
    other_product = states(reordered(model), SCRIPTS["mixed"])
    for script in (SCRIPTS["mixed"], LONG):
        expected = states(model, script)
        for threads in (1, 2, 3):
            with on_threads(threads):
                assert same(states(reordered(model, as_it_was=True), script), expected)
    assert not same(other_product, states(model, SCRIPTS["mixed"]))
