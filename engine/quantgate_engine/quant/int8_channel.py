"""INT8 weights, 16-bit activations: symmetric round-to-nearest, one scale per output channel."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.quant.precision import Precision
from quantgate_kernels.types import Int8ChannelWeight

LARGEST_CODE = 127


def quantize_int8_channel(weight: Tensor, precision: Precision) -> Int8ChannelWeight:
    """scale = max|w| / 127 over a row, rounded to the compute dtype first; code = round(w / scale), half to even.

    Codes are chosen against the rounded scale that the product will use, so that its rounding is no bias of a row.
    A row of zeros gets scale 1. Any layer fits.
    """
    scales = (weight.abs().amax(dim=1) / LARGEST_CODE).to(precision.compute)
    scales = torch.where(scales == 0, torch.ones_like(scales), scales)
    codes = (weight / scales.float().unsqueeze(1)).round_().clamp_(-LARGEST_CODE, LARGEST_CODE)
    return Int8ChannelWeight(codes=codes.to(torch.int8), scales=scales)
