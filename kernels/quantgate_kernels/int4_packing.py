"""Two INT4 codes in one byte: the layout of `Int4GroupWeight`, written and read in one place."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_kernels.types import Int4GroupWeight

ZERO_CODE = 8


def pack_groups(codes: Tensor, scales: Tensor, group_size: int, zeros: Tensor | None = None) -> Int4GroupWeight:
    """codes uint8 [out, in] in 0..15, scales and zeros [out, in / group_size] -> two codes per byte."""
    outputs, inputs = codes.shape
    low, high = codes.view(outputs, inputs // group_size, group_size).chunk(2, dim=-1)
    return Int4GroupWeight(packed=low | (high << 4), scales=scales, group_size=group_size, zeros=zeros)


def unpack_groups(weight: Int4GroupWeight) -> Tensor:
    """-> codes uint8 [out, in] in 0..15."""
    return torch.cat((weight.packed & 15, weight.packed >> 4), dim=-1).view(weight.shape)


def dequantize_groups(weight: Int4GroupWeight, dtype: torch.dtype) -> Tensor:
    """-> [out, in] in `dtype`: (code - zero) * scale, rounded once."""
    codes = unpack_groups(weight).view(weight.packed.shape[0], -1, weight.group_size)
    return grouped_numbers(codes, ZERO_CODE if weight.zeros is None else weight.zeros, weight.scales, dtype)


def grouped_numbers(codes: Tensor, zeros: Tensor | int, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """codes [out, groups, group_size], zeros and scales [out, groups] -> [out, in] in `dtype`, rounded once.

    Codes less zeros are whole numbers up to 255, which all floating dtypes in use hold.
    """
    # A product within one dtype is rounded once; scales of another one meet the codes in float32.
    wide = scales if scales.dtype == dtype else scales.float()
    whole = codes.to(wide.dtype).sub_(zeros if isinstance(zeros, int) else zeros.to(wide.dtype).unsqueeze(-1))
    return whole.mul_(wide.unsqueeze(-1)).to(dtype).flatten(1)
