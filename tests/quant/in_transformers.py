"""Checkpoints in the formats of compressed-tensors as transformers loads them, and as this engine computes in float32.

transformers 5.24 with compressed-tensors 0.20.1 has two ways. Neither takes everything, and they do not compute alike:

- `dequantize=False`: layers stay packed until the model first runs, weights are then products in float32, and layers
  round their inputs where the configuration says so. Packed zeros do not load.
- `dequantize=True`: weights are products in the scales' dtype (float16 here) and widened afterwards, which costs up to
  half a unit in the last place of float16; inputs are never rounded.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, CompressedTensorsConfig

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.quant.layer_schemes import LayerSchemes
from quantgate_engine.quant.precision import float32_precision


def load_in_transformers(folder: Path, *, dequantize: bool) -> Any:
    """In float32, with weights as dense as they get."""
    with warnings.catch_warnings():
        # It says that only `dequantize` of these settings counts beside those of the folder, which is what is wanted.
        warnings.filterwarnings("ignore", "You passed `quantization_config`", UserWarning)
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            quantization_config=CompressedTensorsConfig(dequantize=dequantize),
        ).eval()
    if not dequantize:
        with torch.no_grad():
            model(torch.tensor([[0]]))
    return model


def load_in_engine(folder: Path) -> TorchExecutor:
    """Scheme `stored` of the kernel set `reference`, with activations of float32 in place of 16 bits."""
    with patch.object(LayerSchemes, "precision", lambda _schemes, device, kernels: float32_precision(device, kernels)):
        return TorchExecutor.load(resolve_model(str(folder)), None, EngineConfig(kernel_set="reference"))


def with_wide_scales(folder: Path, target: Path) -> Path:
    """The same numbers, scales in float32, so that products with them are not rounded to float16."""
    shutil.copytree(folder, target)
    for path in target.glob("*.safetensors"):
        tensors = {
            name: tensor.float() if name.endswith(".weight_scale") else tensor
            for name, tensor in load_file(path).items()
        }
        save_file(tensors, path, metadata={"format": "pt"})
    return target


def rounds_inputs(model: Any) -> bool:
    return any(layer.quantization_scheme.input_activations is not None for layer in _quantized(model))


def round_inputs_by_127(model: Any) -> None:
    """Layers round their inputs by a token's largest magnitude / 127, as the engine and vLLM do.

    compressed-tensors divides by 127.5, half of the 255 steps between -128 and 127: another grid.
    """
    assert rounds_inputs(model)
    for layer in _quantized(model):
        layer.quantization_enabled = False
        layer.register_forward_pre_hook(_rounded)


def has_zeros(folder: Path) -> bool:
    groups = json.loads((folder / "config.json").read_text())["quantization_config"]["config_groups"]
    return not all(group["weights"]["symmetric"] for group in groups.values())


def _quantized(model: Any) -> list[Any]:
    return [layer for layer in model.modules() if hasattr(layer, "quantization_scheme")]


def _rounded(_layer: Any, inputs: tuple[Tensor]) -> tuple[Tensor]:
    (x,) = inputs
    scales = (x.abs().amax(dim=-1, keepdim=True) / 127).clamp(min=torch.finfo(x.dtype).tiny)
    return ((x / scales).round() * scales,)
