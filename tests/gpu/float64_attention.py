"""Attention and rope as they are written down, in float64, row by row, without pages, batches or tiles."""

from __future__ import annotations

import torch
from torch import Tensor


def attention_of_row(q: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """q [heads, head_dim]; keys and values [seen tokens, kv_heads, head_dim] -> float64 [heads, head_dim]."""
    group = q.shape[0] // keys.shape[1]
    heads = []
    for head, query in enumerate(q.double()):
        scores = keys[:, head // group].double() @ query * scale
        heads.append(scores.softmax(0) @ values[:, head // group].double())
    return torch.stack(heads)


def rotated(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """heads [T, n, head_dim] by the angles of cos and sin [T, head_dim], half-rotation layout, in float64."""
    half = heads.shape[-1] // 2
    first, second = heads.double()[..., :half], heads.double()[..., half:]
    c, s = (part.double()[:, None, :half] for part in (cos, sin))
    return torch.cat((first * c - second * s, second * c + first * s), dim=-1)


def hadamard(size: int) -> Tensor:
    """The orthonormal Walsh-Hadamard matrix over a head of `size` numbers, in blocks: float64 [size, size]."""
    block = size & -size
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while matrix.shape[0] < block:
        matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)), 0)
    return torch.block_diag(*[matrix / block**0.5] * (size // block))
