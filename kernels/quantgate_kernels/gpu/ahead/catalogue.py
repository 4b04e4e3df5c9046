"""Every kernel in every configuration of the launch table, as launches of the production launchers on no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from quantgate_kernels.gpu.copy_blocks import copy_blocks
from quantgate_kernels.gpu.decode_attention import decode_attention
from quantgate_kernels.gpu.draw_tokens import draw_tokens
from quantgate_kernels.gpu.launch_table import LARGEST_GROUP
from quantgate_kernels.gpu.prefill_attention import prefill_attention
from quantgate_kernels.gpu.rms_norm import rms_norm
from quantgate_kernels.gpu.rotate_and_write import rotate_and_write
from quantgate_kernels.gpu.silu_and_mul import silu_and_mul
from quantgate_kernels.types import AttentionBatch, KVLayer, dtype_name

BLOCK_SIZE = 16
BLOCKS = 512
KV_HEADS = 8
HEAD_DIMS = (64, 80, 96, 128)
GROUP = 4
"""Query heads that share a key head."""

OTHER_GROUPS = (7, 8, LARGEST_GROUP)
"""Of a size that is no power of two, by which rows are divided with more registers; and as large as they may be."""

HEAD_DIMS_OF_OTHER_GROUPS = (64, 128)
"""The widths to which the others are padded."""

SPLIT = 256
HIDDEN_SIZES = (128, 576, 4096, 8192)
VOCABULARY = 128_256
ACTIVATIONS = torch.bfloat16


@dataclass(frozen=True, slots=True)
class Case:
    """`launch` takes the architecture; the names of the cases are unique."""

    name: str
    launch: Callable[[str], None]


def cases() -> Iterator[Case]:
    for kv_dtype in (ACTIVATIONS, torch.float16, torch.int8):
        for head_dim in HEAD_DIMS if kv_dtype != torch.float16 else (128,):
            name = f"head_dim {head_dim}, kv {dtype_name(kv_dtype)}"
            yield from _attention(name, head_dim, kv_dtype, GROUP)
            yield Case(f"rotate few, {name}", partial(_rotate, head_dim, kv_dtype, 4))
            yield Case(f"rotate many, {name}", partial(_rotate, head_dim, kv_dtype, 512))
    for kv_dtype in (ACTIVATIONS, torch.int8):
        for head_dim in HEAD_DIMS_OF_OTHER_GROUPS:
            for group in OTHER_GROUPS:
                name = f"head_dim {head_dim}, kv {dtype_name(kv_dtype)}, groups of {group}"
                yield from _attention(name, head_dim, kv_dtype, group)
    for hidden in HIDDEN_SIZES:
        yield Case(f"norm, {hidden}", partial(_norm, hidden))
    yield Case("gate", _gate)
    yield Case("draw", _draw)
    for dtype in (ACTIVATIONS, torch.int8, torch.float32):
        yield Case(f"copy, {dtype_name(dtype)}", partial(_copy, dtype))


def _attention(name: str, head_dim: int, kv_dtype: torch.dtype, group: int) -> Iterator[Case]:
    yield Case(f"decode, {name}", partial(_decode, head_dim, kv_dtype, group))
    yield Case(f"prefill, {name}", partial(_prefill, head_dim, kv_dtype, group))


def meta(*shape: int, dtype: torch.dtype = ACTIVATIONS) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def meta_cache(head_dim: int, kv_dtype: torch.dtype) -> KVLayer:
    rows = (BLOCKS, BLOCK_SIZE, KV_HEADS)
    pair = (meta(*rows, head_dim, dtype=kv_dtype) for _ in range(2))
    scales = (meta(*rows, dtype=torch.float32) for _ in range(2 if kv_dtype == torch.int8 else 0))
    return KVLayer(*pair, *scales)


def meta_batch(new: tuple[int, ...], contexts: tuple[int, ...]) -> AttentionBatch:
    """Sequences with so many new rows each and contexts of so many tokens."""
    starts = [0]
    for rows in new:
        starts.append(starts[-1] + rows)
    count = len(new)
    return AttentionBatch(
        query_starts=meta(count + 1, dtype=torch.int32),
        context_lens=meta(count, dtype=torch.int32),
        block_tables=meta(count, -(-max(contexts) // BLOCK_SIZE), dtype=torch.int32),
        slots=meta(starts[-1], dtype=torch.int64),
        positions=meta(starts[-1], dtype=torch.int64),
        query_starts_host=tuple(starts),
        context_lens_host=contexts,
        block_size=BLOCK_SIZE,
    )


def _activations(kv_dtype: torch.dtype) -> torch.dtype:
    return ACTIVATIONS if kv_dtype == torch.int8 else kv_dtype


def _decode(head_dim: int, kv_dtype: torch.dtype, group: int, architecture: str) -> None:
    q = meta(4, group * KV_HEADS, head_dim, dtype=_activations(kv_dtype))
    batch = meta_batch((1,) * 4, (1000,) * 4)
    sequences = meta(4, dtype=torch.int32)
    cache = meta_cache(head_dim, kv_dtype)
    decode_attention(q, cache, batch, sequences, 1000, SPLIT, 0.1, None, torch.empty_like(q), architecture)


def _prefill(head_dim: int, kv_dtype: torch.dtype, group: int, architecture: str) -> None:
    q = meta(500, group * KV_HEADS, head_dim, dtype=_activations(kv_dtype))
    batch, tiles = meta_batch((500,), (1000,)), meta(16, 2, dtype=torch.int32)
    cache = meta_cache(head_dim, kv_dtype)
    prefill_attention(q, cache, batch, tiles, 0.1, None, torch.empty_like(q), architecture)


def _rotate(head_dim: int, kv_dtype: torch.dtype, rows: int, _architecture: str) -> None:
    qkv = meta(rows, (GROUP + 2) * KV_HEADS * head_dim, dtype=_activations(kv_dtype))
    angles = meta(rows, head_dim, dtype=torch.float32)
    slots = meta(rows, dtype=torch.int64)
    rotate_and_write(qkv, angles, angles, GROUP * KV_HEADS, KV_HEADS, meta_cache(head_dim, kv_dtype), slots)


def _norm(hidden: int, _architecture: str) -> None:
    x = meta(4, hidden)
    rms_norm(x, meta(hidden), 1e-5)
    rms_norm(x, meta(hidden), 1e-5, x)


def _gate(_architecture: str) -> None:
    silu_and_mul(meta(4, 2 * 14336))


def _draw(_architecture: str) -> None:
    of_rows = [meta(16, dtype=dtype) for dtype in (torch.float32, torch.float32, torch.int64, torch.int64)]
    draw_tokens(meta(16, VOCABULARY, dtype=torch.float32), *of_rows)


def _copy(dtype: torch.dtype, _architecture: str) -> None:
    blocks = meta(2, BLOCKS, BLOCK_SIZE, KV_HEADS, *(() if dtype == torch.float32 else (128,)), dtype=dtype)
    copy_blocks(blocks, blocks, meta(3, 2, dtype=torch.int32))
