"""INT8 weights, 16-bit activations: symmetric round-to-nearest, one scale per output channel."""

from __future__ import annotations

from torch import Tensor

from quantgate_engine.quant.int8_codes import quantize_channels
from quantgate_engine.quant.precision import Precision
from quantgate_kernels.types import Int8ChannelWeight


def quantize_int8_channel(weight: Tensor, precision: Precision) -> Int8ChannelWeight:
    """See `quantize_channels`; scales are stored in the dtype of activations, which they multiply."""
    codes, scales = quantize_channels(weight, precision.compute)
    return Int8ChannelWeight(codes=codes, scales=scales)
