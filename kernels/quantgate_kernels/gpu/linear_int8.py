"""Products of int8 codes with int8 codes, to the bit those that `reference/int8_dynamic.py` defines (W8A8)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.linear_table import int8_launch, tiles_of_split
from quantgate_kernels.gpu.quantize_tokens import quantize_tokens
from quantgate_kernels.gpu.sum_splits import scale_sums, sum_scaled_splits
from quantgate_kernels.reference.int8_dynamic import MOST_INPUTS_IN_INT32
from quantgate_kernels.types import Int8DynamicWeight


@triton.jit(do_not_specialize=["rows", "split_tiles"])
def linear_int8_kernel(
    x: tl.tensor,
    row_scales: tl.tensor,
    codes: tl.tensor,
    scales: tl.tensor,
    product: tl.tensor,
    rows: tl.tensor,
    split_tiles: tl.tensor,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    ROW_TILE: tl.constexpr,
    OUTPUT_TILE: tl.constexpr,
    TILE: tl.constexpr,
    WHOLE: tl.constexpr,
) -> None:
    """One program: a tile of rows, a tile of outputs, a split of the inputs; sums int32 [splits, rows, outputs], or
    the product itself where there is one split.

    Bound: reads the weight's codes once for each tile of rows, inputs bytes a row from a cache that all programs
    share, and does 2 * rows * outputs * inputs operations on int8. The weight is the left factor, as in
    `linear_words_kernel`.
    """
    EVEN: tl.constexpr = INPUTS % TILE == 0
    own_rows = tl.program_id(0) * ROW_TILE + tl.arange(0, ROW_TILE)
    outputs = tl.program_id(1) * OUTPUT_TILE + tl.arange(0, OUTPUT_TILE)
    split = tl.program_id(2)
    row_there = own_rows < rows
    output_there = outputs < OUTPUTS
    x_rows = x + own_rows.to(tl.int64)[:, None] * INPUTS
    code_rows = codes + outputs.to(tl.int64)[:, None] * INPUTS
    begin = split * split_tiles * TILE
    end = tl.minimum(begin + split_tiles * TILE, INPUTS)
    sums = tl.zeros([OUTPUT_TILE, ROW_TILE], tl.int32)
    for start in tl.range(begin, end, TILE):
        inputs = start + tl.arange(0, TILE)
        x_there = row_there[:, None]
        codes_there = output_there[:, None]
        if not EVEN:
            x_there &= (inputs < INPUTS)[None, :]
            codes_there &= (inputs < INPUTS)[None, :]
        weight = tl.load(code_rows + inputs[None, :], mask=codes_there, other=0)
        row = tl.load(x_rows + inputs[None, :], mask=x_there, other=0)
        sums = tl.dot(weight, tl.trans(row), sums, out_dtype=tl.int32)
    there = row_there[:, None] & output_there[None, :]
    places = (split.to(tl.int64) * rows + own_rows)[:, None] * OUTPUTS + outputs[None, :]
    if WHOLE:
        row_scale = tl.load(row_scales + own_rows, mask=row_there, other=0.0)
        scale = tl.load(scales + outputs, mask=output_there, other=0.0)
        scaled = scale_sums(tl.trans(sums), row_scale[:, None], scale[None, :])
        tl.store(product + places, scaled.to(product.dtype.element_ty), mask=there)
    else:
        tl.store(product + places, tl.trans(sums), mask=there)


def linear_int8(x: Tensor, weight: Int8DynamicWeight, architecture: str, processors: int) -> Tensor:
    """x [T, in] in a floating dtype, contiguous -> [T, out] in that dtype.

    Sums are exact, so that neither splits nor company change a bit: there is no other way for the deterministic mode.
    """
    rows, inputs = x.shape
    outputs = weight.shape[0]
    if inputs > MOST_INPUTS_IN_INT32:
        raise ValueError(f"sums over {inputs} inputs do not fit into 32 bits; {MOST_INPUTS_IN_INT32} are the most")
    codes, row_scales = quantize_tokens(x)
    launch = int8_launch(architecture, rows)
    split_tiles = tiles_of_split(launch, rows, outputs, inputs, processors)
    splits = -(-inputs // (split_tiles * launch.inputs))
    product = torch.empty(rows, outputs, dtype=x.dtype, device=x.device)
    target = product
    if splits > 1:
        target = torch.empty(splits, rows, outputs, dtype=torch.int32, device=x.device)
    grid = (triton.cdiv(rows, launch.rows), triton.cdiv(outputs, launch.outputs), splits)
    linear_int8_kernel[grid](
        codes,
        row_scales,
        weight.codes,
        weight.scales,
        target,
        rows,
        split_tiles,
        OUTPUTS=outputs,
        INPUTS=inputs,
        ROW_TILE=launch.rows,
        OUTPUT_TILE=launch.outputs,
        TILE=launch.inputs,
        WHOLE=splits == 1,
        **launch.options(),
    )
    if splits > 1:
        sum_scaled_splits(target, row_scales, weight.scales, product)
    return product
