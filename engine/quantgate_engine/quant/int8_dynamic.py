"""INT8 weights and INT8 activations: symmetric round-to-nearest, one scale per output channel and one per token."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.quant.int8_codes import quantize_channels
from quantgate_engine.quant.precision import Precision
from quantgate_kernels.types import Int8DynamicWeight


def quantize_int8_dynamic(weight: Tensor, _precision: Precision) -> Int8DynamicWeight:
    """See `quantize_channels`; scales stay in float32, in which they meet those of the tokens."""
    codes, scales = quantize_channels(weight, torch.float32)
    return Int8DynamicWeight(codes=codes, scales=scales)
