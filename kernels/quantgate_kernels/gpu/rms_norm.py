"""The norm of rows, with the addition of a residual before it in the same pass."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.launch_table import norm_launch, padded


@triton.jit(do_not_specialize=["rows"])
def rms_norm_kernel(
    x: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    normalised: tl.tensor,
    total: tl.tensor,
    rows: tl.tensor,
    eps: tl.tensor,
    SIZE: tl.constexpr,
    SIZE_PAD: tl.constexpr,
    TILE: tl.constexpr,
    ADDED: tl.constexpr,
) -> None:
    """One program: some whole rows. The sum is rounded before the norm, as it goes on as residual.

    Bound: reads x, and the residual, and writes as much; the weight comes from the cache after the first rows.
    """
    row = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    columns = tl.arange(0, SIZE_PAD)
    there = (row < rows)[:, None] & (columns < SIZE)[None, :]
    numbers = row[:, None] * SIZE + columns[None, :]
    wide = tl.load(x + numbers, mask=there, other=0.0).to(tl.float32)
    if ADDED:
        added = wide + tl.load(residual + numbers, mask=there, other=0.0).to(tl.float32)
        rounded = added.to(total.dtype.element_ty)
        tl.store(total + numbers, rounded, mask=there)
        wide = rounded.to(tl.float32)
    mean = tl.sum(wide * wide, 1) / SIZE
    factors = tl.load(weight + columns, mask=columns < SIZE, other=0.0).to(tl.float32)
    result = wide * (1 / tl.sqrt_rn(mean + eps))[:, None] * factors[None, :]
    tl.store(normalised + numbers, result.to(normalised.dtype.element_ty), mask=there)


def rms_norm(x: Tensor, weight: Tensor, eps: float, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """As `KernelSet.rms_norm`."""
    rows, size = x.shape
    launch = norm_launch(size)
    normalised = torch.empty_like(x)
    total = x if residual is None else torch.empty_like(x)
    rms_norm_kernel[(triton.cdiv(rows, launch.tile),)](
        x,
        residual,
        weight,
        normalised,
        total,
        rows,
        eps,
        SIZE=size,
        SIZE_PAD=padded(size),
        TILE=launch.tile,
        ADDED=residual is not None,
        **launch.options(),
    )
    return normalised, total
