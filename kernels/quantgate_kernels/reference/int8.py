"""Products with symmetric INT8 weights, one scale per output channel."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.types import Int8ChannelWeight

# Torch's fused product reads inputs in vectors of so many, and is wrong, or ends the process, where some are left over.
PACKED_INPUTS = 16


def has_packed_product(x: Tensor) -> bool:
    """Torch's fused INT8 product takes its activations in 16 bits and, in the form used here, runs on CPUs only."""
    fits = x.dtype == torch.bfloat16 and x.shape[1] % PACKED_INPUTS == 0
    return fits and x.device.type == "cpu" and hasattr(torch, "_weight_int8pack_mm")


def multiply_packed(x: Tensor, weight: Int8ChannelWeight) -> Tensor:
    """Reads the codes once, as bytes: best where reading the weight is the cost (few rows)."""
    return torch._weight_int8pack_mm(x, weight.codes, weight.scales)


def multiply_converted(x: Tensor, weight: Int8ChannelWeight) -> Tensor:
    """Every code is exact in any floating dtype of 8 significant bits, so that only the product and scale round."""
    return F.linear(x, weight.codes.to(x.dtype)).mul_(weight.scales)
