"""Products with quantized weights: in which form the `triton` set keeps each, and which kernel multiplies by it."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.gpu.code_words import fits_words, words_of_int4, words_of_int8, words_of_int8_groups
from quantgate_kernels.gpu.dequantize import dequantize
from quantgate_kernels.gpu.device import Device
from quantgate_kernels.gpu.linear_int8 import linear_int8
from quantgate_kernels.gpu.linear_table import MOST_INPUTS_IN_REGISTERS, MOST_ROWS_BY_WORDS
from quantgate_kernels.gpu.linear_words import linear_words
from quantgate_kernels.types import (
    Int4GroupWeight,
    Int8ChannelWeight,
    Int8DynamicWeight,
    Int8GroupWeight,
    LinearWeight,
    StoredWeight,
)
from quantgate_kernels.word_weight import WordWeight

PATH = "triton"
DENSE_PATH = "triton dequantize, torch.linear"

SIXTEEN_BITS = (torch.float16, torch.bfloat16)


def words_of(weight: LinearWeight, compute: torch.dtype) -> WordWeight | None:
    """None for weights that are not multiplied as words; the products of words take rows in 16 bits."""
    if compute not in SIXTEEN_BITS:
        return None
    if isinstance(weight, Int8ChannelWeight):
        return words_of_int8(weight)
    if not isinstance(weight, Int4GroupWeight | Int8GroupWeight):
        return None
    # A code times a scale of more bits would be rounded before it is rounded to the rows' dtype.
    if not fits_words(weight) or weight.scales.dtype not in SIXTEEN_BITS:
        return None
    scales = _in_dtype_of_rows(weight.scales, compute)
    if isinstance(weight, Int4GroupWeight):
        return words_of_int4(replace(weight, scales=scales))
    return words_of_int8_groups(replace(weight, scales=scales))


def _in_dtype_of_rows(scales: Tensor, compute: torch.dtype) -> Tensor:
    """Where that changes none, so that products need no float32: bfloat16 has fewer digits than float16, whose range
    holds the scales of most checkpoints. Else they stay as they are stored."""
    if scales.dtype == compute:
        return scales
    converted = scales.to(compute)
    return converted if torch.equal(converted.to(scales.dtype), scales) else scales


class QuantizedProducts:
    """deterministic: each row of a product is the same bits in any company. paths: where ways that were taken go."""

    def __init__(self, device: Device, paths: dict[str, str], *, deterministic: bool) -> None:
        self._device = device
        self._paths = paths
        self._deterministic = deterministic

    def multiply(self, x: Tensor, weight: StoredWeight) -> Tensor | None:
        """x [T, in] -> [T, out] in x's dtype; None where no kernel multiplies by such a weight."""
        if isinstance(weight, WordWeight):
            return self._by_words(x.contiguous(), weight)
        if isinstance(weight, Int8DynamicWeight) and weight.shape[1] <= MOST_INPUTS_IN_REGISTERS:
            self._paths[f"linear.{weight.label}"] = PATH
            return linear_int8(x.contiguous(), weight, self._device.architecture, self._device.processors)
        return None

    def _by_words(self, x: Tensor, weight: WordWeight) -> Tensor:
        device, label = self._device, f"linear.{weight.label}"
        if self._deterministic:
            self._paths[label] = PATH
            return linear_words(x, weight, device.architecture, device.processors, deterministic=True)
        if x.shape[0] > MOST_ROWS_BY_WORDS:
            self._paths[label] = DENSE_PATH
            return F.linear(x, dequantize(weight, x.dtype))
        self._paths[f"{label}.rows<={MOST_ROWS_BY_WORDS}"] = PATH
        return linear_words(x, weight, device.architecture, device.processors)
