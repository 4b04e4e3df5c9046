"""A tiny model of finite weights whose arithmetic overflows on some tokens."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

_CHANNEL = 5


def make_overflow(folder: Path, nan_token: int, huge_token: int) -> None:
    """Changes a saved model with a head of its own.

    nan_token: what comes after it is computed with NaN, since it alone uses a channel that is multiplied beyond every
    number. huge_token: its embedding is too long for a norm in float32. Neither is ever likely.
    """
    path = folder / "model.safetensors"
    tensors = load_file(path)
    embedding = tensors["model.embed_tokens.weight"]
    embedding[:, _CHANNEL] = 0.0
    embedding[huge_token] = 1e30
    embedding[[nan_token, huge_token], _CHANNEL] = torch.tensor([1.0, 0.0])
    tensors["model.layers.0.input_layernorm.weight"][_CHANNEL] = 3e38
    tensors["lm_head.weight"][[nan_token, huge_token]] = 0.0
    save_file(tensors, path)
