"""Rows of numbers as int8 codes with one scale each: how an INT8 KV cache stores a token's key or value of one head."""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST_CODE = 127


def quantize_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """float32 [..., size] -> (codes int8 [..., size] in -127..127, scales float32 [...]): rows = codes * scales.

    Symmetric: scale = largest magnitude / 127, code = row / scale to the nearest, ties to even. A row of zeros has
    scale 0. One with a NaN or an infinity has that for a scale and codes 0, so that it is a NaN when it is read: an
    overflow stays visible. The clamp is for scales so small that they have lost digits.
    """
    scales = rows.abs().amax(dim=-1) / LARGEST_CODE
    usable = (scales > 0) & scales.isfinite()
    codes = (rows / scales.unsqueeze(-1)).round().clamp(-LARGEST_CODE, LARGEST_CODE)
    return codes.where(usable.unsqueeze(-1), torch.zeros_like(codes)).to(torch.int8), scales


def dequantize_rows(codes: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """int8 [..., size] and float32 [...] -> [..., size] in `dtype`: the product in float32, rounded once."""
    return (codes.float() * scales.unsqueeze(-1)).to(dtype)
