"""Attention of rows that are the one new token of their sequence, over the paged cache, split over the context."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.context_splits import first_read, first_visible
from quantgate_kernels.gpu.launch_table import decode_launch, padded
from quantgate_kernels.gpu.merge_splits import merge_splits
from quantgate_kernels.gpu.split_sizes import split_count
from quantgate_kernels.types import AttentionBatch, KVLayer

SMALLEST_DOT = 16
"""Rows that a matrix instruction takes at least: fewer query heads are padded, which costs no memory traffic."""


@triton.jit(
    do_not_specialize=["split_size", "splits", "table_stride"],
    do_not_specialize_on_alignment=["tables", "query_starts", "context_lens", "sequences"],
)
def decode_attention_kernel(
    q: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    key_scales: tl.tensor,
    value_scales: tl.tensor,
    tables: tl.tensor,
    query_starts: tl.tensor,
    context_lens: tl.tensor,
    sequences: tl.tensor,
    attended: tl.tensor,
    partial: tl.tensor,
    weights: tl.tensor,
    scale_log2: tl.tensor,
    split_size: tl.tensor,
    splits: tl.tensor,
    table_stride: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_PAD: tl.constexpr,
    GROUP_PAD: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    TILE: tl.constexpr,
    WINDOW: tl.constexpr,
    CODES: tl.constexpr,
    WHOLE: tl.constexpr,
) -> None:
    """One program: a sequence, a key head with all query heads that share it, a split of the context.

    Bound: reads (split tokens) * 2 * head_dim stored numbers and 8 bytes of scales a token where they are codes; does
    4 * (split tokens) * group * head_dim operations, so that memory bounds it up to about 100 query heads a key head.
    Codes become numbers by one multiplication a token and query head, of scores and of weights, not one a number.
    """
    GROUP: tl.constexpr = HEADS // KV_HEADS
    entry = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    sequence = tl.load(sequences + entry).to(tl.int64)
    length = tl.load(context_lens + sequence)
    visible = first_visible(length, WINDOW)
    begin = first_read(length, WINDOW, TILE) + split * split_size
    end = tl.minimum(begin + split_size, length)
    if begin < end:
        row = tl.load(query_starts + sequence).to(tl.int64)
        heads = kv_head * GROUP + tl.arange(0, GROUP_PAD)
        shared = tl.arange(0, GROUP_PAD) < GROUP
        dims = tl.arange(0, HEAD_PAD)
        real = dims < HEAD_DIM
        inside = shared[:, None] & real[None, :]
        query = tl.load(q + (row * HEADS + heads)[:, None] * HEAD_DIM + dims[None, :], mask=inside, other=0.0)
        highest = tl.full([GROUP_PAD], float("-inf"), tl.float32)
        total = tl.zeros([GROUP_PAD], tl.float32)
        sums = tl.zeros([GROUP_PAD, HEAD_PAD], tl.float32)
        for start in tl.range(begin, end, TILE):
            tokens = start + tl.arange(0, TILE)
            seen = (tokens < end) & (tokens >= visible)
            blocks = tl.load(tables + sequence * table_stride + tokens // BLOCK_SIZE, mask=seen, other=0).to(tl.int64)
            slots = (blocks * BLOCK_SIZE + tokens % BLOCK_SIZE) * KV_HEADS + kv_head
            numbers = slots[:, None] * HEAD_DIM + dims[None, :]
            there = seen[:, None] & real[None, :]
            key = tl.load(keys + numbers, mask=there, other=0).to(query.dtype)
            if CODES:
                # Asked for as columns, or Triton reads values 8 bytes at a time, for a product of 16-bit numbers.
                columns = tl.load(
                    values + slots[None, :] * HEAD_DIM + dims[:, None], mask=seen[None, :] & real[:, None], other=0
                )
                value = tl.trans(columns.to(query.dtype))
            else:
                value = tl.load(values + numbers, mask=there, other=0)
            scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale_log2
            if CODES:
                scores *= tl.load(key_scales + slots, mask=seen, other=0.0)[None, :]
            scores = tl.where(seen[None, :], scores, float("-inf"))
            new_highest = tl.maximum(highest, tl.max(scores, 1))
            kept = tl.exp2(highest - new_highest)
            shares = tl.exp2(scores - new_highest[:, None])
            total = total * kept + tl.sum(shares, 1)
            if CODES:
                # The tile's largest scale stays outside: small scales times small shares leave float16's range.
                value_scale = tl.load(value_scales + slots, mask=seen, other=0.0)
                largest = tl.max(value_scale, 0)
                largest = tl.where(largest > 0, largest, 1.0)
                shares *= (value_scale / largest)[None, :]
                product = tl.dot(shares.to(query.dtype), value, input_precision="ieee") * largest
            else:
                product = tl.dot(shares.to(query.dtype), value, input_precision="ieee")
            sums = sums * kept[:, None] + product
            highest = new_highest
        sums = sums / total[:, None]
        if WHOLE:
            target = attended + (row * HEADS + heads)[:, None] * HEAD_DIM + dims[None, :]
            tl.store(target, sums.to(attended.dtype.element_ty), mask=inside)
        else:
            part = (entry * HEADS + heads) * splits + split
            tl.store(partial + part[:, None] * HEAD_DIM + dims[None, :], sums, mask=inside)
            tl.store(weights + part, highest + tl.log2(total), mask=shared)


def decode_attention(
    q: Tensor,
    cache: KVLayer,
    batch: AttentionBatch,
    sequences: Tensor,
    longest: int,
    split: int,
    scale: float,
    window: int | None,
    attended: Tensor,
    architecture: str,
) -> None:
    """Fills the rows of `sequences` in attended [T, heads, head_dim]; q [T, heads, head_dim].

    sequences: int32 [N], each with one new token, or with none where a captured graph is padded (context 0). longest:
    no context of theirs has more tokens. split: tokens of a split, a multiple of the launch's tile.
    """
    _, heads, head_dim = q.shape
    block_size, kv_heads = cache.keys.shape[1:3]
    launch = decode_launch(architecture, cache.keys.element_size(), head_dim)
    if split % launch.tile:
        raise ValueError(f"a split of {split} tokens is not a multiple of the tile, {launch.tile}")
    count = sequences.shape[0]
    splits = split_count(longest, split, window, launch.tile)
    whole = splits == 1
    partial = weights = None
    if not whole:
        partial = torch.empty(count, heads, splits, head_dim, dtype=torch.float32, device=q.device)
        weights = torch.empty(count, heads, splits, dtype=torch.float32, device=q.device)
    decode_attention_kernel[(count, kv_heads, splits)](
        q,
        cache.keys,
        cache.values,
        cache.key_scales,
        cache.value_scales,
        batch.block_tables,
        batch.query_starts,
        batch.context_lens,
        sequences,
        attended,
        partial,
        weights,
        scale * math.log2(math.e),
        split,
        splits,
        batch.block_tables.stride(0),
        HEADS=heads,
        KV_HEADS=kv_heads,
        HEAD_DIM=head_dim,
        HEAD_PAD=padded(head_dim),
        GROUP_PAD=max(SMALLEST_DOT, padded(heads // kv_heads)),
        BLOCK_SIZE=block_size,
        TILE=launch.tile,
        WINDOW=window or 0,
        CODES=cache.key_scales is not None,
        WHOLE=whole,
        **launch.options(),
    )
    if partial is not None and weights is not None:
        merge_splits(partial, weights, batch, sequences, split, window, launch.tile, attended)
