"""Copies of whole blocks of a cache: forks, and what a swap gathers or spreads on the device's side of it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.launch_table import COPY

WORD = torch.int32


@triton.jit(
    do_not_specialize=["source_part", "source_block", "target_part", "target_block"],
    do_not_specialize_on_alignment=["pairs"],
)
def copy_blocks_kernel(
    source: tl.tensor,
    target: tl.tensor,
    pairs: tl.tensor,
    source_part: tl.tensor,
    source_block: tl.tensor,
    target_part: tl.tensor,
    target_block: tl.tensor,
    WORDS: tl.constexpr,
    TILE: tl.constexpr,
) -> None:
    """One program: some words of one part of one block. Steps from part to part and block to block are in WORDS.

    Bound: reads and writes the bytes of each block once.
    """
    pair, part = tl.program_id(0), tl.program_id(2).to(tl.int64)
    read = part * source_part + tl.load(pairs + 2 * pair).to(tl.int64) * source_block
    written = part * target_part + tl.load(pairs + 2 * pair + 1).to(tl.int64) * target_block
    words = tl.program_id(1) * TILE + tl.arange(0, TILE)
    there = words < WORDS
    tl.store(target + written * WORDS + words, tl.load(source + read * WORDS + words, mask=there), mask=there)


def copy_blocks(source: Tensor, target: Tensor, pairs: Tensor) -> None:
    """See `KernelSet.copy_blocks`. The bytes of a part of a block are a multiple of four, and lie together."""
    read, written = (tensor.view(*tensor.shape[:2], -1).view(WORD) for tensor in (source, target))
    parts, words = read.shape[0], read.shape[2]
    steps = [stride // words for tensor in (read, written) for stride in tensor.stride()[:2]]
    copy_blocks_kernel[(pairs.shape[0], triton.cdiv(words, COPY.tile), parts)](
        read, written, pairs, *steps, WORDS=words, TILE=COPY.tile, **COPY.options()
    )
