"""Inside kernels: rows that hold a number which is not finite."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def broken(rows: tl.tensor) -> tl.tensor:
    """[rows, size] -> bool [rows]: whether a NaN or an infinity is among a row's numbers."""
    return tl.max((~(tl.abs(rows) < float("inf"))).to(tl.int32), 1) > 0
