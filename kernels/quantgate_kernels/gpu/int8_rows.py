"""Inside kernels: rows of numbers as int8 codes with one scale each, as `reference/int8_rows.py` defines them."""

from __future__ import annotations

import triton
import triton.language as tl

from quantgate_kernels.gpu.broken_rows import broken

LARGEST_CODE = tl.constexpr(127.0)
ROUNDS = tl.constexpr(12582912.0)
"""1.5 * 2^23: added and taken away, it leaves the nearest integer, ties to even (no rounding is in Triton itself)."""


@triton.jit
def quantize_rows(rows: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """float32 [rows, size] -> (codes int8 [rows, size], scales float32 [rows]).

    A row with a NaN or an infinity has scale NaN and codes 0: what overflowed stays visible when it is read.
    """
    largest = tl.max(tl.abs(rows), 1)
    scales = tl.where(broken(rows), float("nan"), tl.div_rn(largest, LARGEST_CODE))
    usable = scales > 0
    quotients = tl.div_rn(rows, tl.where(usable, scales, 1.0)[:, None])
    rounded = (quotients + ROUNDS) - ROUNDS
    clamped = tl.minimum(tl.maximum(rounded, -LARGEST_CODE), LARGEST_CODE)
    return tl.where(usable[:, None], clamped, 0.0).to(tl.int8), scales
