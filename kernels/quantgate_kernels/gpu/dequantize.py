"""Weights of 4 and 8 bits as 16-bit numbers, for products of so many rows that a dense one is faster."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.code_numbers import weight_tile
from quantgate_kernels.gpu.linear_table import DEQUANTIZE
from quantgate_kernels.word_weight import WordWeight


@triton.jit
def dequantize_kernel(
    words: tl.tensor,
    scales: tl.tensor,
    zeros: tl.tensor,
    numbers: tl.tensor,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    ROW_WORDS: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    OUTPUT_TILE: tl.constexpr,
    TILE: tl.constexpr,
) -> None:
    """One program: a tile of outputs and of inputs.

    Bound: reads BITS / 8 bytes a number and writes 2.
    """
    DTYPE: tl.constexpr = numbers.dtype.element_ty
    outputs = tl.program_id(0) * OUTPUT_TILE + tl.arange(0, OUTPUT_TILE)
    start = tl.program_id(1) * TILE
    inputs = start + tl.arange(0, TILE)
    weight = weight_tile(
        words, scales, zeros, outputs, start, OUTPUTS, INPUTS, ROW_WORDS, BITS, GROUP, OUTPUT_TILE, TILE, DTYPE
    )
    output_there = outputs < OUTPUTS
    if GROUP == 0:
        scale = tl.load(scales + outputs, mask=output_there, other=0.0)
        weight = (weight.to(tl.float32) * scale.to(tl.float32)[:, None]).to(DTYPE)
    there = output_there[:, None]
    if INPUTS % TILE != 0:
        there &= (inputs < INPUTS)[None, :]
    tl.store(numbers + outputs.to(tl.int64)[:, None] * INPUTS + inputs[None, :], weight, mask=there)


def dequantize(weight: WordWeight, dtype: torch.dtype) -> Tensor:
    """-> [out, in] in a dtype of 16 bits: (code - zero) * scale, rounded once."""
    outputs, inputs = weight.shape
    numbers = torch.empty(outputs, inputs, dtype=dtype, device=weight.words.device)
    dequantize_kernel[(triton.cdiv(outputs, DEQUANTIZE.outputs), triton.cdiv(inputs, DEQUANTIZE.inputs))](
        weight.words,
        weight.scales,
        weight.zeros,
        numbers,
        OUTPUTS=outputs,
        INPUTS=inputs,
        ROW_WORDS=weight.words.shape[1],
        BITS=weight.bits,
        GROUP=weight.group_size or 0,
        OUTPUT_TILE=DEQUANTIZE.outputs,
        TILE=DEQUANTIZE.inputs,
        **DEQUANTIZE.options(),
    )
    return numbers
