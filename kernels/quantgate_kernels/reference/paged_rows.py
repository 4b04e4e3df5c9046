"""Rows of keys and values in the paged cache: written to slots, gathered from slots, whichever way they are stored."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_kernels.reference.int8_rows import dequantize_rows, quantize_rows
from quantgate_kernels.types import KVLayer


def write_rows(cache: KVLayer, slots: Tensor, keys: Tensor, values: Tensor) -> None:
    """keys and values [T, kv_heads, head_dim] to slots int64 [T]; a cache with scales quantizes them from float32."""
    _write(cache.keys, cache.key_scales, slots, keys)
    _write(cache.values, cache.value_scales, slots, values)


def gather_keys(cache: KVLayer, slots: Tensor, dtype: torch.dtype) -> Tensor:
    """Keys at slots int64 [N] -> [N, kv_heads, head_dim] in `dtype`."""
    return _gather(cache.keys, cache.key_scales, slots, dtype)


def gather_values(cache: KVLayer, slots: Tensor, dtype: torch.dtype) -> Tensor:
    """Values at slots int64 [N] -> [N, kv_heads, head_dim] in `dtype`."""
    return _gather(cache.values, cache.value_scales, slots, dtype)


def arithmetic_over(cache: KVLayer, dtype: torch.dtype) -> torch.dtype:
    """The dtype to attend in: that of the queries; float32 over codes, which 16 bits would round once more."""
    return dtype if cache.key_scales is None else torch.float32


def path_over(cache: KVLayer, path: str) -> str:
    """The path's name for manifests, with the way that the cache is stored where that is a way of its own."""
    return path if cache.key_scales is None else f"{path}, int8 kv"


def _write(stored: Tensor, scales: Tensor | None, slots: Tensor, rows: Tensor) -> None:
    kv_heads, head_dim = stored.shape[2:]
    if scales is not None:
        rows, row_scales = quantize_rows(rows.float())
        scales.view(-1, kv_heads).index_copy_(0, slots, row_scales)
    width = kv_heads * head_dim
    stored.view(-1, width).index_copy_(0, slots, rows.reshape(-1, width))


def _gather(stored: Tensor, scales: Tensor | None, slots: Tensor, dtype: torch.dtype) -> Tensor:
    kv_heads, head_dim = stored.shape[2:]
    rows = stored.view(-1, kv_heads * head_dim).index_select(0, slots).view(-1, kv_heads, head_dim)
    if scales is None:
        return rows
    return dequantize_rows(rows, scales.view(-1, kv_heads).index_select(0, slots), dtype)
