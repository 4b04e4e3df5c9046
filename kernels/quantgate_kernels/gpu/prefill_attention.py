"""Attention of the new rows of sequences, whole prompts or chunks of them, over the paged cache."""

from __future__ import annotations

import math

import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.launch_table import padded, prefill_launch
from quantgate_kernels.types import AttentionBatch, KVLayer


@triton.jit(
    do_not_specialize=["table_stride"],
    do_not_specialize_on_alignment=["tables", "query_starts", "context_lens", "tiles"],
)
def prefill_attention_kernel(
    q: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    key_scales: tl.tensor,
    value_scales: tl.tensor,
    tables: tl.tensor,
    query_starts: tl.tensor,
    context_lens: tl.tensor,
    tiles: tl.tensor,
    attended: tl.tensor,
    scale_log2: tl.tensor,
    table_stride: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_PAD: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    TILE: tl.constexpr,
    WINDOW: tl.constexpr,
    CODES: tl.constexpr,
) -> None:
    """One program: some consecutive rows of a sequence and a key head with all query heads that share it.

    Bound: 4 * head_dim operations for each query head of a row and each token that it sees; the keys and values, read
    once a program, come from the cache of the device where several programs walk over the same context.
    Tiles of the context begin at multiples of their size, and one that a row sees nothing of changes no bit of its
    sums: how a prompt is cut into chunks, and what else is in the batch, cannot be seen in the result.
    """
    GROUP: tl.constexpr = HEADS // KV_HEADS
    QUERIES: tl.constexpr = ROWS // GROUP
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    sequence = tl.load(tiles + 2 * tile).to(tl.int64)
    first = tl.load(tiles + 2 * tile + 1)
    length = tl.load(context_lens + sequence)
    row_of_first = tl.load(query_starts + sequence)
    new = tl.load(query_starts + sequence + 1) - row_of_first
    lanes = tl.arange(0, ROWS)
    query_index = first + lanes // GROUP
    taken = (lanes < QUERIES * GROUP) & (query_index < new)
    position = length - new + query_index
    heads = kv_head * GROUP + lanes % GROUP
    dims = tl.arange(0, HEAD_PAD)
    real = dims < HEAD_DIM
    inside = taken[:, None] & real[None, :]
    rows = (row_of_first + query_index).to(tl.int64) * HEADS + heads
    query = tl.load(q + rows[:, None] * HEAD_DIM + dims[None, :], mask=inside, other=0.0)
    highest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, HEAD_PAD], tl.float32)
    end = length - new + tl.minimum(first + QUERIES, new)
    visible = tl.maximum(length - new + first + 1 - WINDOW, 0) if WINDOW > 0 else length * 0
    for start in tl.range(visible // TILE * TILE, end, TILE):
        tokens = start + tl.arange(0, TILE)
        read = (tokens < end) & (tokens >= visible)
        blocks = tl.load(tables + sequence * table_stride + tokens // BLOCK_SIZE, mask=read, other=0).to(tl.int64)
        slots = (blocks * BLOCK_SIZE + tokens % BLOCK_SIZE) * KV_HEADS + kv_head
        numbers = slots[:, None] * HEAD_DIM + dims[None, :]
        there = read[:, None] & real[None, :]
        key = tl.load(keys + numbers, mask=there, other=0)
        if CODES:
            key = (key.to(tl.float32) * tl.load(key_scales + slots, mask=read, other=0.0)[:, None]).to(query.dtype)
        scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale_log2
        seen = tokens[None, :] <= position[:, None]
        if WINDOW > 0:
            seen &= tokens[None, :] > position[:, None] - WINDOW
        scores = tl.where(seen, scores, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        # Where a row has seen nothing yet, the difference of two infinities would be no number.
        base = tl.where(new_highest == float("-inf"), 0.0, new_highest)
        kept = tl.exp2(highest - base)
        shares = tl.exp2(scores - base[:, None])
        total = total * kept + tl.sum(shares, 1)
        if CODES:
            # Asked for as columns, as in decodes.
            columns = tl.load(
                values + slots[None, :] * HEAD_DIM + dims[:, None], mask=read[None, :] & real[:, None], other=0
            )
            scaled = columns.to(tl.float32) * tl.load(value_scales + slots, mask=read, other=0.0)[None, :]
            value = tl.trans(scaled.to(query.dtype))
        else:
            value = tl.load(values + numbers, mask=there, other=0)
        product = tl.dot(shares.to(query.dtype), value, input_precision="ieee")
        sums = sums * kept[:, None] + product
        highest = new_highest
    target = attended + rows[:, None] * HEAD_DIM + dims[None, :]
    tl.store(target, (sums / total[:, None]).to(attended.dtype.element_ty), mask=inside)


def prefill_attention(
    q: Tensor,
    cache: KVLayer,
    batch: AttentionBatch,
    tiles: Tensor,
    scale: float,
    window: int | None,
    attended: Tensor,
    architecture: str,
) -> None:
    """Fills the rows of `tiles` in attended [T, heads, head_dim]; q [T, heads, head_dim].

    tiles: int32 [N, 2], a sequence and the first of its new rows, as `prefill_tiles` gives them.
    """
    _, heads, head_dim = q.shape
    block_size, kv_heads = cache.keys.shape[1:3]
    launch = prefill_launch(architecture, cache.keys.element_size(), head_dim)
    prefill_attention_kernel[(tiles.shape[0], kv_heads)](
        q,
        cache.keys,
        cache.values,
        cache.key_scales,
        cache.value_scales,
        batch.block_tables,
        batch.query_starts,
        batch.context_lens,
        tiles,
        attended,
        scale * math.log2(math.e),
        batch.block_tables.stride(0),
        HEADS=heads,
        KV_HEADS=kv_heads,
        HEAD_DIM=head_dim,
        HEAD_PAD=padded(head_dim),
        ROWS=launch.rows,
        BLOCK_SIZE=block_size,
        TILE=launch.tile,
        WINDOW=window or 0,
        CODES=cache.key_scales is not None,
        **launch.options(),
    )
