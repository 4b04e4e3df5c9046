"""Checkpoints of `quantgate quantize` load in transformers with compressed-tensors, to the same weights and logits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.engine.against_transformers import expected_logits, random_tokens, relative_difference
from tests.quant.in_transformers import (
    has_zeros,
    load_in_engine,
    load_in_transformers,
    round_inputs_by_127,
    with_wide_scales,
)
from tests.quant.written_by_command import INT8_ACTIVATIONS, SCHEMES, save_model, write_checkpoint

from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.linear_layers import float_weight
from quantgate_engine.model.stored_layers import StoredLayers

TOKENS = random_tokens(24)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", params=SCHEMES)
def written(request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    scheme: str = request.param
    return write_checkpoint(model, scheme, "compressed-tensors", tmp_path_factory.mktemp("written") / scheme)


def test_weights_are_the_same_to_the_bit(written: Path) -> None:
    theirs = load_in_transformers(written, dequantize=True)
    stored, config = StoredLayers.of(written), read_decoder_config(written)
    with Checkpoint(written) as checkpoint:
        for layer in config.linear_layers():
            found = theirs.get_submodule(layer).weight
            expected = float_weight(checkpoint, stored, layer, (found.shape[0], found.shape[1]))
            assert torch.equal(found, expected.half().float()), layer


def test_logits_are_the_same(written: Path, tmp_path: Path) -> None:
    """Symmetric weights as they are written; those with zeros with wider scales, which changes no number."""
    zeros = has_zeros(written)
    folder = with_wide_scales(written, tmp_path / "wide") if zeros else written
    theirs = load_in_transformers(folder, dequantize=zeros)
    own_grid = expected_logits(theirs, TOKENS)
    found = load_in_engine(written).logits(TOKENS)
    if written.name not in INT8_ACTIVATIONS:
        assert relative_difference(found, own_grid) < 1e-5
        return
    # The library rounds inputs on a grid of its own, so that it is near and not the same.
    assert 1e-3 < relative_difference(found, own_grid) < 0.1
    round_inputs_by_127(theirs)
    expected = expected_logits(theirs, TOKENS)
    # An input between two codes is rounded by its last bit, which the order of a sum decides: a row or two may differ.
    rows = (found - expected).abs().amax(dim=1) / expected.abs().max()
    assert int((rows > 1e-5).sum()) <= 2
