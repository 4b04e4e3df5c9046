"""A head's numbers spread over each other, so that no few of them are larger than the rest."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def spread(heads: Tensor) -> Tensor:
    """float32 [..., head_dim] times an orthonormal Walsh-Hadamard matrix.

    In blocks of the largest power of two that divides head_dim. Products of two vectors stay what they are when both
    are spread, while an outlier is shared out over its block: a scale for the whole row then wastes fewer codes
    (QuaRot, Ashkboos et al. 2024, arXiv:2404.00456).
    """
    size = heads.shape[-1]
    block = size & -size
    stride = 1
    while stride < block:
        first, second = heads.reshape(*heads.shape[:-1], -1, 2, stride).unbind(-2)
        heads = torch.stack((first + second, first - second), dim=-2).flatten(-3)
        stride *= 2
    return heads * (1 / math.sqrt(block))
