"""Rotary position embeddings (Su et al. 2021, arXiv:2104.09864) in the half-rotation layout of Hugging Face."""

from __future__ import annotations

import torch
from torch import Tensor


class RotaryTable:
    """cos and sin of position * theta^(-2i / head_dim), float32 [positions, head_dim], both halves alike.

    Covers `max_positions` from the start: a lookup per step is then one gather, and no request can outgrow it.
    """

    def __init__(self, head_dim: int, theta: float, max_positions: int, device: torch.device) -> None:
        exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device=device) / head_dim
        angles = torch.outer(torch.arange(max_positions, dtype=torch.float32, device=device), theta**-exponents)
        doubled = torch.cat((angles, angles), dim=-1)
        self._cos, self._sin = doubled.cos(), doubled.sin()

    def lookup(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """positions int64 [T] -> cos and sin [T, head_dim]."""
        return self._cos.index_select(0, positions), self._sin.index_select(0, positions)
