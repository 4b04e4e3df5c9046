"""A step as the C++ step program reads it: the structures of source/step/decoder.h that change from step to step."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import KVLayer


class LayerCacheLayout(ctypes.Structure):
    _fields_ = (
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("key_scales", ctypes.c_void_p),
        ("value_scales", ctypes.c_void_p),
    )


class StepLayout(ctypes.Structure):
    _fields_ = (
        ("token_ids", ctypes.c_void_p),
        ("query_starts", ctypes.c_void_p),
        ("context_lens", ctypes.c_void_p),
        ("block_tables", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("sequences", ctypes.c_int64),
        ("block_size", ctypes.c_int64),
        ("max_blocks", ctypes.c_int64),
        ("cache", ctypes.POINTER(LayerCacheLayout)),
        ("output_rows", ctypes.c_void_p),
        ("output_count", ctypes.c_int64),
    )


class LaidOutStep(NamedTuple):
    """The structure of a step, and the numbers whose memory it points to."""

    step: StepLayout
    kept: tuple[array[int], ...]


def lay_out_cache(cache: Sequence[KVLayer]) -> ctypes.Array[LayerCacheLayout]:
    """Addresses only: the caller keeps the cache's tensors."""
    return (LayerCacheLayout * len(cache))(
        *(
            LayerCacheLayout(
                *(
                    None if tensor is None else tensor.data_ptr()
                    for tensor in (layer.keys, layer.values, layer.key_scales, layer.value_scales)
                )
            )
            for layer in cache
        )
    )


def lay_out_step(
    rows: StepRows, cache: ctypes.Array[LayerCacheLayout], output_rows: Sequence[int] | None
) -> LaidOutStep:
    """By arrays of Python's own: after a step that has swept the caches, each call into torch costs microseconds."""
    sequences, widest = len(rows.context_lens), max(map(len, rows.block_tables))
    tokens = array("q", rows.token_ids)
    # int32: starts, contexts, and tables that all become as long as the longest one.
    numbers = array("i", rows.query_starts)
    numbers.extend(rows.context_lens)
    for table in rows.block_tables:
        numbers.extend(table)
        numbers.extend((0,) * (widest - len(table)))
    outputs = None if output_rows is None else array("q", output_rows)
    starts = address_of(numbers)
    contexts = starts + numbers.itemsize * (sequences + 1)
    step = StepLayout(
        address_of(tokens), starts, contexts, contexts + numbers.itemsize * sequences,
        len(tokens), sequences, rows.block_size, widest, cache,
        *((None, len(tokens)) if outputs is None else (address_of(outputs), len(outputs))),
    )  # fmt: skip
    return LaidOutStep(step, (tokens, numbers) if outputs is None else (tokens, numbers, outputs))


def address_of(numbers: array[int]) -> int:
    return numbers.buffer_info()[0]
