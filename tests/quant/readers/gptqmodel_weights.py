"""Weights of GPTQ checkpoints as gptqmodel dequantizes them on a CPU.

Install as tests/quant/fixtures/make/gptqmodel_files.py says, in an environment of its own; then
    GPTQMODEL_CPU_WORKERS=2 python gptqmodel_weights.py OUT FOLDER...

OUT/NAME-OF-FOLDER.safetensors gets `NAME.weight`, float32 [out, in], of every quantized layer.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import torch
from safetensors.torch import save_file
from torch import Tensor

# The one module of gptqmodel that needs torchvision, whose build for CPUs no registry has, is a model of images.
images = ModuleType("gptqmodel.models.definitions.internvl_chat")
images.InternVLChatQModel = object
sys.modules[images.__name__] = images

from gptqmodel import BACKEND, GPTQModel  # noqa: E402 - the line above must have run


def dequantized(folder: Path) -> dict[str, Tensor]:
    # By itself it takes bfloat16 on a CPU and rounds the saved float16 scales.
    model = GPTQModel.load(str(folder), device="cpu", backend=BACKEND.GPTQ_TORCH, dtype=torch.float16).model
    weights = {}
    for name, layer in model.named_modules():
        if hasattr(layer, "dequantize_weight"):
            layer.scales = layer.scales.float()
            weights[f"{name}.weight"] = layer.dequantize_weight().T.float().contiguous()
    return weights


if __name__ == "__main__":
    out, *folders = map(Path, sys.argv[1:])
    for folder in folders:
        save_file(dequantized(folder), out / f"{folder.name}.safetensors")
