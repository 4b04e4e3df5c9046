"""Rotary position embeddings (Su et al. 2021, arXiv:2104.09864) in the half-rotation layout of Hugging Face."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.model.rope_scaling.base import Rotation
from quantgate_kernels.layers import Angles


class RotaryTable:
    """cos and sin of position * frequency, times the attention factor; float32 [positions, head_dim], halves alike.

    Covers `max_positions` from the start: a lookup per step is then one gather, and no request can outgrow it.
    """

    def __init__(self, rotation: Rotation, max_positions: int, device: torch.device) -> None:
        frequencies = torch.tensor(rotation.frequencies, dtype=torch.float32, device=device)
        angles = torch.outer(torch.arange(max_positions, dtype=torch.float32, device=device), frequencies)
        doubled = torch.cat((angles, angles), dim=-1)
        self._cos_and_sin = torch.stack((doubled.cos(), doubled.sin())).mul_(rotation.attention_factor)

    @property
    def angles(self) -> Angles:
        """The whole table."""
        return Angles(*self._cos_and_sin.unbind(0))

    def lookup(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """positions int64 [T] -> cos and sin [T, head_dim]."""
        cos, sin = self._cos_and_sin.index_select(1, positions).unbind(0)
        return cos, sin
