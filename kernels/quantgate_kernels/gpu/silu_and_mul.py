"""The gate of a feed-forward block: silu of the first half of a row times the second."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.launch_table import GATE


@triton.jit
def silu_and_mul_kernel(gate_up: tl.tensor, gated: tl.tensor, FFN: tl.constexpr, TILE: tl.constexpr) -> None:
    """One program: some numbers of a row, in float32, rounded once.

    Bound: reads each number once and writes half as many.
    """
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    there = columns < FFN
    source = gate_up + row * (2 * FFN) + columns
    gate = tl.load(source, mask=there, other=0.0).to(tl.float32)
    up = tl.load(source + FFN, mask=there, other=0.0).to(tl.float32)
    tl.store(gated + row * FFN + columns, (gate * tl.sigmoid(gate) * up).to(gated.dtype.element_ty), mask=there)


def silu_and_mul(gate_up: Tensor) -> Tensor:
    """As `KernelSet.silu_and_mul`."""
    rows, width = gate_up.shape
    gated = torch.empty(rows, width // 2, dtype=gate_up.dtype, device=gate_up.device)
    silu_and_mul_kernel[(rows, triton.cdiv(width // 2, GATE.tile))](
        gate_up, gated, FFN=width // 2, TILE=GATE.tile, **GATE.options()
    )
    return gated
