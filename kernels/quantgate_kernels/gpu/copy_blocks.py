"""Copies of whole blocks of a cache: forks, and what a swap gathers or spreads on the device's side of it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.launch_table import COPY

WORD = torch.int32


@triton.jit(do_not_specialize_on_alignment=["pairs"])
def copy_blocks_kernel(
    source: tl.tensor, target: tl.tensor, pairs: tl.tensor, WORDS: tl.constexpr, TILE: tl.constexpr
) -> None:
    """One program: some words of one block.

    Bound: reads and writes the bytes of each block once.
    """
    pair = tl.program_id(0)
    read = tl.load(pairs + 2 * pair).to(tl.int64)
    written = tl.load(pairs + 2 * pair + 1).to(tl.int64)
    words = tl.program_id(1) * TILE + tl.arange(0, TILE)
    there = words < WORDS
    tl.store(target + written * WORDS + words, tl.load(source + read * WORDS + words, mask=there), mask=there)


def copy_blocks(source: Tensor, target: Tensor, pairs: Tensor) -> None:
    """source and target [blocks, ...], alike but for their number of blocks; pairs int32 [N, 2]: block read, written.

    The copies run side by side: no block is written twice, and none is read that another copy writes. A block's bytes
    are a multiple of four.
    """
    read, written = (tensor.view(tensor.shape[0], -1).view(WORD) for tensor in (source, target))
    words = read.shape[1]
    copy_blocks_kernel[(pairs.shape[0], triton.cdiv(words, COPY.tile))](
        read, written, pairs, WORDS=words, TILE=COPY.tile, **COPY.options()
    )
