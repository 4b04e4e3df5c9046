"""Products of 16-bit rows with weights of 4 or 8 bits (W4A16, W8A16)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.code_numbers import weight_tile
from quantgate_kernels.gpu.linear_table import tiles_of_split, words_launch
from quantgate_kernels.gpu.sum_splits import sum_splits
from quantgate_kernels.word_weight import WordWeight


@triton.jit(do_not_specialize=["rows", "split_tiles"])
def linear_words_kernel(
    x: tl.tensor,
    words: tl.tensor,
    scales: tl.tensor,
    zeros: tl.tensor,
    product: tl.tensor,
    rows: tl.tensor,
    split_tiles: tl.tensor,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    ROW_WORDS: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    ROW_TILE: tl.constexpr,
    OUTPUT_TILE: tl.constexpr,
    TILE: tl.constexpr,
) -> None:
    """One program: a tile of rows, a tile of outputs, a split of the inputs; product [splits, rows, outputs].

    Bound: reads the weight's bits once for each tile of rows, 2 * inputs bytes a row from a cache that all programs
    share, and does 2 * rows * outputs * inputs operations: memory bounds it up to some hundred rows.

    The weight is the left factor. Then few rows, too, are enough for the instructions of whole warp groups, which take
    at least 64 numbers on the left and 8 on the right, and the left ones from registers: what was made from words
    there goes through no shared memory.
    """
    DTYPE: tl.constexpr = x.dtype.element_ty
    EVEN: tl.constexpr = INPUTS % TILE == 0
    own_rows = tl.program_id(0) * ROW_TILE + tl.arange(0, ROW_TILE)
    outputs = tl.program_id(1) * OUTPUT_TILE + tl.arange(0, OUTPUT_TILE)
    split = tl.program_id(2)
    row_there = own_rows < rows
    output_there = outputs < OUTPUTS
    x_rows = x + own_rows.to(tl.int64)[:, None] * INPUTS
    begin = split * split_tiles * TILE
    end = tl.minimum(begin + split_tiles * TILE, INPUTS)
    sums = tl.zeros([OUTPUT_TILE, ROW_TILE], tl.float32)
    for start in tl.range(begin, end, TILE):
        inputs = start + tl.arange(0, TILE)
        x_there = row_there[:, None]
        if not EVEN:
            x_there &= (inputs < INPUTS)[None, :]
        weight = weight_tile(
            words, scales, zeros, outputs, start, OUTPUTS, INPUTS, ROW_WORDS, BITS, GROUP, OUTPUT_TILE, TILE, DTYPE
        )
        row = tl.load(x_rows + inputs[None, :], mask=x_there, other=0.0)
        sums = tl.dot(weight, tl.trans(row), sums)
    if GROUP == 0:
        sums *= tl.load(scales + outputs, mask=output_there, other=0.0).to(tl.float32)[:, None]
    target = product + (split.to(tl.int64) * rows + own_rows)[:, None] * OUTPUTS + outputs[None, :]
    tl.store(target, tl.trans(sums).to(product.dtype.element_ty), mask=row_there[:, None] & output_there[None, :])


def linear_words(
    x: Tensor, weight: WordWeight, architecture: str, processors: int, *, deterministic: bool = False
) -> Tensor:
    """x [T, in] in 16 bits, contiguous -> [T, out] in x's dtype; weights in groups are rounded to that dtype too.

    processors: of the device. deterministic: a row's result is the same bits in any company.
    """
    rows, inputs = x.shape
    outputs = weight.shape[0]
    launch = words_launch(architecture, rows, deterministic=deterministic)
    split_tiles = tiles_of_split(launch, rows, outputs, inputs, processors, deterministic=deterministic)
    splits = -(-inputs // (split_tiles * launch.inputs))
    product = torch.empty(rows, outputs, dtype=x.dtype, device=x.device)
    target = product
    if splits > 1:
        target = torch.empty(splits, rows, outputs, dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(rows, launch.rows), triton.cdiv(outputs, launch.outputs), splits)
    linear_words_kernel[grid](
        x,
        weight.words,
        weight.scales,
        weight.zeros,
        target,
        rows,
        split_tiles,
        OUTPUTS=outputs,
        INPUTS=inputs,
        ROW_WORDS=weight.words.shape[1],
        BITS=weight.bits,
        GROUP=weight.group_size or 0,
        ROW_TILE=launch.rows,
        OUTPUT_TILE=launch.outputs,
        TILE=launch.inputs,
        **launch.options(),
    )
    if splits > 1:
        sum_splits(target, product)
    return product
