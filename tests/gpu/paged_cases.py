"""Paged caches with known contents, and the steps over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tests.attention_batches import batch_of
from torch import Tensor

from quantgate_kernels.reference.int8_rows import quantize_rows
from quantgate_kernels.types import AttentionBatch, KVLayer


@dataclass(frozen=True)
class Contexts:
    """Keys and values of each sequence [tokens, kv_heads, head_dim], as a cache of that dtype holds them.

    Of codes, `keys` and `values` are what the codes and scales stand for, and both are kept too.
    """

    keys: list[Tensor]
    values: list[Tensor]
    stored: list[tuple[Tensor, ...]]


def random_contexts(
    lengths: Sequence[int], kv_heads: int, head_dim: int, dtype: torch.dtype, seed: int = 0
) -> Contexts:
    """dtype int8: codes with scales."""
    generator = torch.Generator().manual_seed(seed)
    keys, values, stored = [], [], []
    for length in lengths:
        pair = [torch.randn(length, kv_heads, head_dim, generator=generator) for _ in range(2)]
        if dtype == torch.int8:
            coded = [quantize_rows(rows) for rows in pair]
            pair = [codes.double() * scales.double()[..., None] for codes, scales in coded]
            stored.append((coded[0][0], coded[1][0], coded[0][1], coded[1][1]))
        else:
            pair = [rows.to(dtype) for rows in pair]
            stored.append(tuple(pair))
        keys.append(pair[0])
        values.append(pair[1])
    return Contexts(keys, values, stored)


def paged_step(
    contexts: Contexts, new: Sequence[int], block_size: int, order: Sequence[int] | None = None, *, poison: bool = False
) -> tuple[KVLayer, AttentionBatch]:
    """The contexts laid out in blocks taken from `order`; the last `new` tokens of each are the step's rows.

    poison: all other slots hold NaN, or the greatest code with a NaN for a scale; else zeros.
    """
    lengths = [keys.shape[0] for keys in contexts.keys]
    needed = [-(-length // block_size) for length in lengths]
    blocks = list(order) if order is not None else list(range(sum(needed)))
    fills = [float("nan") if poison else 0.0] * 4
    first = contexts.stored[0]
    tensors = []
    for part, fill in zip(first, fills, strict=False):
        shape = (max(blocks) + 2, block_size, *part.shape[1:])
        codes = part.dtype == torch.int8
        tensors.append(torch.full(shape, 127 * int(poison) if codes else fill, dtype=part.dtype))
    tables = []
    free = iter(blocks)
    for length, count, parts in zip(lengths, needed, contexts.stored, strict=True):
        table = [next(free) for _ in range(count)]
        own = torch.tensor([table[at // block_size] * block_size + at % block_size for at in range(length)])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.view(-1, *part.shape[1:])[own] = part
        tables.append(table)
    return KVLayer(*tensors), batch_of(tables, lengths, new, block_size)


def queries(rows: int, heads: int, head_dim: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(rows, heads, head_dim, generator=torch.Generator().manual_seed(7)).to(dtype)
