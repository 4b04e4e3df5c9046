"""Rows of activations as int8 codes with one scale each (the first half of W8A8)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.int8_rows import quantize_rows
from quantgate_kernels.gpu.launch_table import padded
from quantgate_kernels.gpu.linear_table import tokens_launch


@triton.jit
def quantize_tokens_kernel(
    x: tl.tensor, codes: tl.tensor, scales: tl.tensor, INPUTS: tl.constexpr, INPUTS_PAD: tl.constexpr
) -> None:
    """One program: a row, which its registers hold while its largest magnitude is found.

    Bound: reads 2 * inputs bytes a row and writes inputs + 4.
    """
    row = tl.program_id(0).to(tl.int64)
    inputs = tl.arange(0, INPUTS_PAD)[None, :]
    there = inputs < INPUTS
    numbers = tl.load(x + row * INPUTS + inputs, mask=there, other=0.0).to(tl.float32)
    row_codes, scale = quantize_rows(numbers)
    tl.store(codes + row * INPUTS + inputs, row_codes, mask=there)
    tl.store(scales + row + tl.arange(0, 1), scale)


def quantize_tokens(x: Tensor) -> tuple[Tensor, Tensor]:
    """x [T, in], contiguous -> (codes int8 [T, in], scales float32 [T]), as `reference/int8_rows.py` defines them."""
    rows, inputs = x.shape
    launch = tokens_launch(inputs)
    codes = torch.empty(rows, inputs, dtype=torch.int8, device=x.device)
    scales = torch.empty(rows, dtype=torch.float32, device=x.device)
    quantize_tokens_kernel[(rows,)](x, codes, scales, INPUTS=inputs, INPUTS_PAD=padded(inputs), **launch.options())
    return codes, scales
