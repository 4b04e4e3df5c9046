"""The splits of a context put together: a weighted mean, in the order of the splits."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.context_splits import first_read
from quantgate_kernels.gpu.launch_table import MERGE, padded
from quantgate_kernels.types import AttentionBatch


@triton.jit(
    do_not_specialize=["split_size", "splits"],
    do_not_specialize_on_alignment=["query_starts", "context_lens", "sequences"],
)
def merge_splits_kernel(
    partial: tl.tensor,
    weights: tl.tensor,
    query_starts: tl.tensor,
    context_lens: tl.tensor,
    sequences: tl.tensor,
    attended: tl.tensor,
    split_size: tl.tensor,
    splits: tl.tensor,
    HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_PAD: tl.constexpr,
    TILE: tl.constexpr,
    WINDOW: tl.constexpr,
    SPLITS_AT_ONCE: tl.constexpr,
) -> None:
    """One program: a row and a query head; only the splits that the row's own context has are read.

    Bound: reads (splits * (head_dim + 1)) * 4 bytes and writes head_dim numbers; all else is free beside it.
    """
    entry = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    sequence = tl.load(sequences + entry).to(tl.int64)
    length = tl.load(context_lens + sequence)
    own = tl.cdiv(length - first_read(length, WINDOW, TILE), split_size)
    dims = tl.arange(0, HEAD_PAD)
    real = dims < HEAD_DIM
    first = (entry * HEADS + head) * splits
    # Finite, so that the first difference from it is no NaN.
    highest = tl.full([], -1e30, tl.float32)
    total = tl.zeros([], tl.float32)
    sums = tl.zeros([HEAD_PAD], tl.float32)
    for start in tl.range(0, own, SPLITS_AT_ONCE):
        some = start + tl.arange(0, SPLITS_AT_ONCE)
        there = some < own
        weight = tl.load(weights + first + some, mask=there, other=float("-inf"))
        part = tl.load(
            partial + (first + some)[:, None] * HEAD_DIM + dims[None, :], mask=there[:, None] & real[None, :], other=0.0
        )
        new_highest = tl.maximum(highest, tl.max(weight, 0))
        kept = tl.exp2(highest - new_highest)
        share = tl.exp2(weight - new_highest)
        total = total * kept + tl.sum(share, 0)
        sums = sums * kept + tl.sum(share[:, None] * part, 0)
        highest = new_highest
    if own > 0:
        row = tl.load(query_starts + sequence).to(tl.int64)
        target = attended + (row * HEADS + head) * HEAD_DIM + dims
        tl.store(target, (sums / total).to(attended.dtype.element_ty), mask=real)


def merge_splits(
    partial: Tensor,
    weights: Tensor,
    batch: AttentionBatch,
    sequences: Tensor,
    split: int,
    window: int | None,
    tile: int,
    attended: Tensor,
) -> None:
    """partial float32 [N, heads, splits, head_dim] with weights float32 [N, heads, splits], as powers of two.

    Fills the rows of `sequences` in attended [T, heads, head_dim]. tile: that of the kernel which made the splits.
    """
    count, heads, splits, head_dim = partial.shape
    merge_splits_kernel[(count, heads)](
        partial,
        weights,
        batch.query_starts,
        batch.context_lens,
        sequences,
        attended,
        split,
        splits,
        HEADS=heads,
        HEAD_DIM=head_dim,
        HEAD_PAD=padded(head_dim),
        TILE=tile,
        WINDOW=window or 0,
        SPLITS_AT_ONCE=MERGE.tile,
        **MERGE.options(),
    )
