"""Inside kernels: which tokens of a context a split covers. The kernel that reads them and that which merges agree."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def first_visible(length: tl.tensor, WINDOW: tl.constexpr) -> tl.tensor:
    """The first token that the last one of a context of `length` tokens sees."""
    if WINDOW > 0:
        return tl.maximum(length - WINDOW, 0)
    return length * 0


@triton.jit
def first_read(length: tl.tensor, WINDOW: tl.constexpr, TILE: tl.constexpr) -> tl.tensor:
    """The first token of the tile that holds it: where the first split begins."""
    return first_visible(length, WINDOW) // TILE * TILE
