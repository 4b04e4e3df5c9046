"""Two INT4 codes in one byte: the layout of `Int4GroupWeight`, written and read in one place."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_kernels.types import Int4GroupWeight

ZERO_CODE = 8


def pack_groups(codes: Tensor, scales: Tensor, group_size: int) -> Int4GroupWeight:
    """codes uint8 [out, in] in 0..15 and scales [out, in / group_size] -> two codes per byte."""
    outputs, inputs = codes.shape
    low, high = codes.view(outputs, inputs // group_size, group_size).chunk(2, dim=-1)
    return Int4GroupWeight(packed=low | (high << 4), scales=scales, group_size=group_size)


def unpack_groups(weight: Int4GroupWeight) -> Tensor:
    """-> codes uint8 [out, in] in 0..15."""
    return torch.cat((weight.packed & 15, weight.packed >> 4), dim=-1).view(weight.shape)


def dequantize_groups(weight: Int4GroupWeight, dtype: torch.dtype) -> Tensor:
    """-> [out, in] in `dtype`: (code - 8) * scale, rounded once."""
    scales = weight.scales.to(dtype).unsqueeze(-1)
    codes = unpack_groups(weight).view(weight.packed.shape[0], -1, weight.group_size).to(dtype)
    return torch.addcmul(-ZERO_CODE * scales, codes, scales).view(weight.shape)
