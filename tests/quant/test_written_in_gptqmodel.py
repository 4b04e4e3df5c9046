"""GPTQ checkpoints of `quantgate quantize` stand for the same weights in gptqmodel as here, to the bit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.quant.written_by_command import INT8_ACTIVATIONS, SCHEMES, save_model, write_checkpoint

from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.linear_layers import float_weight
from quantgate_engine.model.stored_layers import StoredLayers

PYTHON = os.environ.get("QUANTGATE_GPTQMODEL_PYTHON")
SCRIPT = Path(__file__).parent / "readers" / "gptqmodel_weights.py"
# A GPTQ checkpoint cannot say that inputs are rounded.
IN_GPTQ = [scheme for scheme in SCHEMES if scheme not in INT8_ACTIVATIONS]


# gptqmodel wants other versions of torch and transformers than this project; see readers/README.md.
@pytest.mark.skipif(PYTHON is None, reason="QUANTGATE_GPTQMODEL_PYTHON names no Python that has gptqmodel")
@pytest.mark.gptqmodel
def test_weights_are_the_same_to_the_bit(tmp_path: Path) -> None:
    assert PYTHON is not None
    model = save_model(tmp_path / "model")
    folders = [write_checkpoint(model, scheme, "gptq", tmp_path / scheme) for scheme in IN_GPTQ]
    # Of its own count of workers on two cores it says itself that it is too few.
    environment = {**os.environ, "GPTQMODEL_CPU_WORKERS": "2"}
    environment.pop("PYTHONPATH", None)
    command = [PYTHON, SCRIPT, tmp_path, *folders]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for folder in folders:
        theirs = load_file(tmp_path / f"{folder.name}.safetensors")
        stored, config = StoredLayers.of(folder), read_decoder_config(folder)
        assert set(theirs) == {f"{layer}.weight" for layer in config.linear_layers()}
        with Checkpoint(folder) as checkpoint:
            for name, found in theirs.items():
                expected = float_weight(checkpoint, stored, name.removesuffix(".weight"), tuple(found.shape))
                assert torch.equal(found, expected), (folder.name, name)
