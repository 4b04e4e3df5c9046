"""A tiny model whose linear layers a test quantizes and stores in a format, and the float model that it stands for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tests.engine.tiny_model import save_tiny_model
from torch import Tensor

from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.quant.grouped_codes import GroupedCodes

Write = Callable[[GroupedCodes], dict[str, Tensor]]
Quantize = Callable[[str, Tensor], GroupedCodes | None]
"""Layer and its float weight to codes; None leaves it as it is."""


def save_stored_model(
    folder: Path, quantize: Quantize, write: Write, quantization_config: dict[str, Any], **changes: Any
) -> tuple[ModelFolder, Any]:
    """-> (the quantized folder, transformers' float model with the weights that the codes stand for)."""
    saved, model = save_tiny_model(folder, **changes)
    weights = folder / "model.safetensors"
    stored = load_file(weights)
    with torch.no_grad():
        for layer, module in model.named_modules():
            codes = quantize(layer, module.weight.float()) if isinstance(module, torch.nn.Linear) else None
            if codes is not None:
                module.weight.copy_(codes.dequantize())
                del stored[f"{layer}.weight"]
                stored |= {f"{layer}.{name}": tensor.contiguous() for name, tensor in write(codes).items()}
    save_file(stored, weights, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": quantization_config}))
    return saved, model
