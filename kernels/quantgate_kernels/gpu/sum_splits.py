"""Sums over the splits of a product's inputs, in the order of the splits."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.linear_table import SUM


@triton.jit
def scale_sums(sums: tl.tensor, row_scales: tl.tensor, scales: tl.tensor) -> tl.tensor:
    """int32 sums of products of codes -> float32, rounded in the order that `reference/int8_dynamic.py` defines."""
    return sums.to(tl.float32) * (row_scales * scales)


@triton.jit(do_not_specialize=["splits"])
def sum_splits_kernel(
    partial: tl.tensor,
    row_scales: tl.tensor,
    scales: tl.tensor,
    product: tl.tensor,
    count: tl.tensor,
    splits: tl.tensor,
    OUTPUTS: tl.constexpr,
    TILE: tl.constexpr,
    CODES: tl.constexpr,
) -> None:
    """One program: TILE of the product's `count` numbers. CODES: sums are of products of codes, and are scaled.

    Bound: reads 4 * splits bytes a number and writes it; the additions are free beside it.
    """
    places = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    there = places < count
    part = partial + places
    sums = tl.load(part, mask=there, other=0)
    for _ in tl.range(1, splits):
        part += count
        sums += tl.load(part, mask=there, other=0)
    if CODES:
        row_scale = tl.load(row_scales + places // OUTPUTS, mask=there, other=0.0)
        scale = tl.load(scales + places % OUTPUTS, mask=there, other=0.0)
        sums = scale_sums(sums, row_scale, scale)
    tl.store(product + places, sums.to(product.dtype.element_ty), mask=there)


def sum_splits(partial: Tensor, product: Tensor) -> None:
    """partial float32 [splits, rows, outputs] -> fills product [rows, outputs]."""
    _sum(partial, None, None, product)


def sum_scaled_splits(partial: Tensor, row_scales: Tensor, scales: Tensor, product: Tensor) -> None:
    """partial int32 [splits, rows, outputs], scales float32 [rows] and [outputs] -> fills product [rows, outputs]."""
    _sum(partial, row_scales, scales, product)


def _sum(partial: Tensor, row_scales: Tensor | None, scales: Tensor | None, product: Tensor) -> None:
    count = product.numel()
    sum_splits_kernel[(triton.cdiv(count, SUM.tile),)](
        partial,
        row_scales,
        scales,
        product,
        count,
        partial.shape[0],
        OUTPUTS=product.shape[1],
        TILE=SUM.tile,
        CODES=row_scales is not None,
        **SUM.options(),
    )
