"""Products of INT8 weights with activations that are quantized to INT8 as they come, one scale per row (token).

What a product is, to the bit, on every kernel set:
1. codes and scale of each row of activations, as `int8_rows.quantize_rows` finds them from the row in float32;
2. the sum of products of codes, as an exact integer;
3. that sum rounded to float32, times (row scale * channel scale), each product in float32;
4. the result rounded once to the dtype of the activations.

A row of zeros has scale 0 and products 0; one with a NaN or an infinity has products NaN. Since the sums are exact, no
order of theirs, no tile and no number of rows or threads changes a bit: a row's result depends on that row alone.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.reference.int8_rows import LARGEST_CODE, quantize_rows
from quantgate_kernels.types import Int8DynamicWeight

LARGEST_PRODUCT = LARGEST_CODE**2
MOST_INPUTS_IN_INT32 = (2**31 - 1) // LARGEST_PRODUCT
"""133,144 products of codes cannot overflow an int32, whatever the codes are."""

MOST_INPUTS_IN_FLOAT32 = 2**24 // LARGEST_PRODUCT
"""float32 holds every integer up to 2^24, so that no partial sum of 1,040 products of codes is rounded."""


def has_int32_product(x: Tensor) -> bool:
    """Torch's integer product, in the form used here, takes any number of rows on CPUs only.

    Of a weight with one input it takes a column for a row, and reads past its end (torch 2.13).
    """
    return x.device.type == "cpu" and 1 < x.shape[1] <= MOST_INPUTS_IN_INT32 and _int32_product_is_exact()


def multiply_in_int32(x: Tensor, weight: Int8DynamicWeight) -> Tensor:
    """x [T, in] -> [T, out] in x's dtype; 2 * T * in * out operations on int8, which reads the codes once, as bytes."""
    codes, scales = quantize_rows(x.float())
    return _scaled(torch._int_mm(codes, weight.codes.t()), scales, weight, x.dtype)


def multiply_in_chunks(x: Tensor, weight: Int8DynamicWeight) -> Tensor:
    """The same bits by floating products: exact in float32 over a chunk of inputs, and in float64 over the chunks.

    Arithmetic that rounds the operands of float32 products (to TF32 or bfloat16) changes nothing: 7 bits hold a code's
    magnitude.
    """
    codes, scales = quantize_rows(x.float())
    sums = torch.zeros(x.shape[0], weight.shape[0], dtype=torch.float64, device=x.device)
    chunks = (torch.split(part, MOST_INPUTS_IN_FLOAT32, dim=1) for part in (codes, weight.codes))
    for left, right in zip(*chunks, strict=True):
        sums += F.linear(left.float(), right.float())
    return _scaled(sums, scales, weight, x.dtype)


def _scaled(sums: Tensor, row_scales: Tensor, weight: Int8DynamicWeight, dtype: torch.dtype) -> Tensor:
    return sums.float().mul_(row_scales.unsqueeze(1) * weight.scales).to(dtype)


@cache
def _int32_product_is_exact() -> bool:
    """Without instructions for int8 dot products, libraries may add pairs of products in 16 bits, which saturate.

    The operator is not in torch's public interface either: a probe with the largest codes decides, not a version.
    """
    inputs = 192
    signs = torch.tensor([1, -1], dtype=torch.int8)
    try:
        for rows in (1, 2, 64):
            left, right = (signs.repeat(32)[:count] for count in (rows, 64))
            codes = [(sign * LARGEST_CODE).unsqueeze(1).expand(-1, inputs).contiguous() for sign in (left, right)]
            expected = torch.outer(left.int(), right.int()) * (inputs * LARGEST_PRODUCT)
            if not torch.equal(torch._int_mm(codes[0], codes[1].t()), expected):
                return False
    except (AttributeError, RuntimeError):
        return False
    return True
