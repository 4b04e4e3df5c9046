"""Rope and the KV write in one pass: 16 bits as they are, or INT8 codes with a scale for each token and head."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.broken_rows import broken
from quantgate_kernels.gpu.int8_rows import quantize_rows
from quantgate_kernels.gpu.launch_table import padded, rotate_launch
from quantgate_kernels.gpu.spread import spread
from quantgate_kernels.types import KVLayer


@triton.jit(do_not_specialize=["rows"], do_not_specialize_on_alignment=["slots"])
def rotate_and_write_kernel(
    qkv: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    slots: tl.tensor,
    queries: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    key_scales: tl.tensor,
    value_scales: tl.tensor,
    rows: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    HEAD_PAD: tl.constexpr,
    SPREAD_BLOCK: tl.constexpr,
    TILE: tl.constexpr,
    CODES: tl.constexpr,
) -> None:
    """One program: some rows and one head, which is a query, a key or a value.

    Bound: reads qkv once, values twice, and cos and sin from the cache after the first head; writes each number once,
    keys and values as stored, with 4 bytes of scale a token and head where they are codes.

    Values with a NaN or an infinity are written as zeros, and a NaN into their key: who sees the token is broken as
    before, and who does not see it is not. Attention multiplies all values of a tile with all of its rows, by 0 where a
    row does not see a token; 0 * NaN would reach the rows before it, whose keys and values other requests may share.
    """
    head = tl.program_id(1)
    row = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    dims = tl.arange(0, HEAD_PAD)
    there = (row < rows)[:, None] & (dims < HEAD_DIM)[None, :]
    source = qkv + (row[:, None] * (HEADS + 2 * KV_HEADS) + head) * HEAD_DIM
    numbers = tl.load(source + dims[None, :], mask=there, other=0.0).to(tl.float32)
    if head < HEADS + KV_HEADS:
        numbers = _rotate(numbers, source, cos, sin, row, there, HEAD_DIM, HEAD_PAD)
        if CODES:
            numbers = spread(numbers, TILE, HEAD_PAD, SPREAD_BLOCK)
    if head < HEADS:
        target = queries + (row[:, None] * HEADS + head) * HEAD_DIM + dims[None, :]
        tl.store(target, numbers.to(queries.dtype.element_ty), mask=there)
    else:
        slot = tl.load(slots + row, mask=row < rows, other=-1)
        if head < HEADS + KV_HEADS:
            own_values = tl.load(source + KV_HEADS * HEAD_DIM + dims[None, :], mask=there, other=0.0).to(tl.float32)
            numbers = tl.where(broken(own_values)[:, None] & (dims == 0)[None, :], float("nan"), numbers)
            _write(numbers, slot * KV_HEADS + head - HEADS, slot >= 0, keys, key_scales, HEAD_DIM, HEAD_PAD, CODES)
        else:
            kv_head = head - HEADS - KV_HEADS
            numbers = tl.where(broken(numbers)[:, None], 0.0, numbers)
            _write(numbers, slot * KV_HEADS + kv_head, slot >= 0, values, value_scales, HEAD_DIM, HEAD_PAD, CODES)


@triton.jit
def _rotate(
    numbers: tl.tensor,
    source: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    row: tl.tensor,
    there: tl.tensor,
    HEAD_DIM: tl.constexpr,
    HEAD_PAD: tl.constexpr,
) -> tl.tensor:
    """(a, b) -> (a cos - b sin, b cos + a sin) over the halves of a head, in float32."""
    HALF: tl.constexpr = HEAD_DIM // 2
    dims = tl.arange(0, HEAD_PAD)
    first = dims < HALF
    partner = tl.load(source + tl.where(first, dims + HALF, dims - HALF)[None, :], mask=there, other=0.0)
    # Both halves of cos and sin are alike; the first is that which counts.
    angle = row[:, None] * HEAD_DIM + tl.where(first, dims, dims - HALF)[None, :]
    cosine = tl.load(cos + angle, mask=there, other=0.0)
    sine = tl.load(sin + angle, mask=there, other=0.0)
    return numbers * cosine + partner.to(tl.float32) * tl.where(first[None, :], -sine, sine)


@triton.jit
def _write(
    numbers: tl.tensor,
    place: tl.tensor,
    wanted: tl.tensor,
    stored: tl.tensor,
    scales: tl.tensor,
    HEAD_DIM: tl.constexpr,
    HEAD_PAD: tl.constexpr,
    CODES: tl.constexpr,
) -> None:
    dims = tl.arange(0, HEAD_PAD)
    target = stored + place[:, None] * HEAD_DIM + dims[None, :]
    there = wanted[:, None] & (dims < HEAD_DIM)[None, :]
    if CODES:
        codes, row_scales = quantize_rows(numbers)
        tl.store(target, codes, mask=there)
        tl.store(scales + place, row_scales, mask=wanted)
    else:
        tl.store(target, numbers.to(stored.dtype.element_ty), mask=there)


def rotate_and_write(
    qkv: Tensor,
    cos: Tensor,
    sin: Tensor,
    num_heads: int,
    num_kv_heads: int,
    cache: KVLayer,
    slots: Tensor,
    *,
    fixed: bool = False,
) -> Tensor:
    """As `KernelSet.rope_and_write_kv`; a row with a slot below 0 writes none, as rows that pad a captured graph.

    fixed: by the same machine code whatever the number of rows.
    """
    rows, head_dim = cos.shape
    launch = rotate_launch(rows, fixed=fixed)
    queries = torch.empty(rows, num_heads, head_dim, dtype=qkv.dtype, device=qkv.device)
    rotate_and_write_kernel[(triton.cdiv(rows, launch.tile), num_heads + 2 * num_kv_heads)](
        qkv,
        cos,
        sin,
        slots,
        queries,
        cache.keys,
        cache.values,
        cache.key_scales,
        cache.value_scales,
        rows,
        HEADS=num_heads,
        KV_HEADS=num_kv_heads,
        HEAD_DIM=head_dim,
        HEAD_PAD=padded(head_dim),
        SPREAD_BLOCK=head_dim & -head_dim,
        TILE=launch.tile,
        CODES=cache.key_scales is not None,
        **launch.options(),
    )
    return queries
