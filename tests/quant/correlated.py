"""Weights and inputs for the tests of quantizers."""

from __future__ import annotations

import torch
from torch import Tensor


def random_weight(outputs: int, inputs: int, seed: int) -> Tensor:
    """Heavy-tailed, as trained weights are."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(outputs, inputs, generator=generator)
    return values * (1 + values.abs()) / 10


def correlated_rows(rows: int, inputs: int, seed: int) -> Tensor:
    """Inputs that share a few causes, and differ in size as the activations of a model do."""
    generator = torch.Generator().manual_seed(seed + 1)
    causes = torch.randn(rows, max(2, inputs // 4), generator=generator)
    mixed = causes @ torch.randn(causes.shape[1], inputs, generator=generator)
    sizes = torch.exp(torch.randn(inputs, generator=generator))
    return (mixed + 0.5 * torch.randn(rows, inputs, generator=generator)) * sizes


def hessian_of(rows: Tensor) -> Tensor:
    return rows.double().t() @ rows.double()
