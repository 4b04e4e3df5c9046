"""What other libraries wrote and what they make of it themselves: this engine reads the same weights and logits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.engine.against_transformers import relative_difference

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ModelError
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.linear_layers import float_weight
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.model.stored_layers import StoredLayers

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.parent.name for path in FIXTURES.glob("*/expected.safetensors"))
REFUSED = {"bnb-int8"}
"""Which is read from floats by its arm, not as it is stored."""
ROUNDED_ACTIVATIONS = {"ct-w8a8", "ct-mixed"}
"""Whose logits are of layers that round their inputs, as the scheme `stored` does and float32 does not."""


def folder(name: str) -> ModelFolder:
    return ModelFolder(FIXTURES / name, name, weights_sha256="0" * 64, tokenizer_sha256="0" * 64)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED])
def test_weights_are_those_of_the_library_to_the_bit(name: str) -> None:
    expected = load_file(FIXTURES / name / "expected.safetensors")
    layers = {key.removesuffix(".weight"): tensor for key, tensor in expected.items() if key.endswith(".weight")}
    stored = StoredLayers.of(FIXTURES / name)
    assert stored is not None
    with Checkpoint(FIXTURES / name) as checkpoint:
        for layer, weight in layers.items():
            assert stored.storage(layer) is not None
            found = float_weight(checkpoint, stored, layer, (weight.shape[0], weight.shape[1]))
            assert torch.equal(found, weight.float()), layer
    linear = set(read_decoder_config(FIXTURES / name).linear_layers())
    assert linear == {layer for layer in layers if layer != "lm_head"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED | ROUNDED_ACTIVATIONS])
def test_logits_are_those_of_the_library(name: str) -> None:
    expected = load_file(FIXTURES / name / "expected.safetensors")
    executor = TorchExecutor.load(folder(name), "fp32", EngineConfig(kernel_set="reference"))
    found = executor.logits(expected["prompt"].flatten().tolist())
    assert relative_difference(found, expected["logits"].float().view(found.shape)) < 1e-3


@pytest.mark.parametrize("name", sorted(ROUNDED_ACTIVATIONS))
def test_logits_of_rounded_activations_are_near_the_library_s(name: str) -> None:
    """Activations have 16 bits here."""
    expected = load_file(FIXTURES / name / "expected.safetensors")
    executor = TorchExecutor.load(folder(name), None, EngineConfig(kernel_set="reference"))
    found = executor.logits(expected["prompt"].flatten().tolist())
    assert relative_difference(found, expected["logits"].float().view(found.shape)) < 0.05


def test_what_is_not_read_is_refused() -> None:
    with pytest.raises(ModelError, match="load_in_4bit"):
        TorchExecutor.load(folder("bnb-int8"), None, EngineConfig(kernel_set="reference"))
