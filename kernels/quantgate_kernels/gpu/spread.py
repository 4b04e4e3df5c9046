"""Inside kernels: a head's numbers spread over each other, as `reference/spread.py` defines it."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def spread(rows: tl.tensor, ROWS: tl.constexpr, SIZE_PAD: tl.constexpr, BLOCK: tl.constexpr) -> tl.tensor:
    """float32 [ROWS, SIZE_PAD] times an orthonormal Walsh-Hadamard matrix in blocks of BLOCK, a power of two.

    Butterflies in the order of the reference's, so that sums round alike.
    """
    STAGES: tl.constexpr = _log2(BLOCK)
    for stage in tl.static_range(STAGES):
        pairs = rows.reshape(ROWS, SIZE_PAD // (2 << stage), 2, 1 << stage).permute(0, 1, 3, 2)
        first, second = tl.split(pairs)
        joined = tl.join(first + second, first - second)
        rows = joined.permute(0, 1, 3, 2).reshape(ROWS, SIZE_PAD)
    return rows * (1 / BLOCK**0.5)


@triton.constexpr_function
def _log2(number: int) -> int:
    return number.bit_length() - 1
