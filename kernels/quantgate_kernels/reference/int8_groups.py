"""Products with INT8 weights in groups."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.int4_packing import grouped_numbers
from quantgate_kernels.types import Int8GroupWeight


def dequantize(weight: Int8GroupWeight, dtype: torch.dtype) -> Tensor:
    """-> [out, in] in `dtype`: (code - zero) * scale, rounded once."""
    codes = weight.codes.view(weight.shape[0], -1, weight.group_size)
    return grouped_numbers(codes, 0 if weight.zeros is None else weight.zeros, weight.scales, dtype)


def multiply_dequantized(x: Tensor, weight: Int8GroupWeight) -> Tensor:
    return F.linear(x, dequantize(weight, x.dtype))
