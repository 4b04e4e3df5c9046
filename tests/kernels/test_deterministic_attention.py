"""The deterministic sets' rope and attention: a row is computed as its own decode, in whatever chunk it comes."""

from __future__ import annotations

import pytest
import torch
from tests.kernels.own_rows import DTYPES, ROWS, assert_rows_are_their_own, on_threads
from tests.kernels.test_stored_weights import random_normal
from torch import Tensor

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.registry import make_kernel_set
from quantgate_kernels.types import AttentionBatch, KVLayer


def empty_cache(dtype: torch.dtype, kv_heads: int, head_dim: int, int8: bool) -> KVLayer:
    shape = (40, 4, kv_heads, head_dim)
    if not int8:
        return KVLayer(*(torch.zeros(shape, dtype=dtype) for _ in range(2)))
    codes = (torch.zeros(shape, dtype=torch.int8) for _ in range(2))
    return KVLayer(*codes, *(torch.zeros(shape[:3]) for _ in range(2)))


def drawn_cache(dtype: torch.dtype, kv_heads: int, head_dim: int, int8: bool) -> KVLayer:
    """Normal numbers, or codes and scales that stand for about such."""
    cache = empty_cache(dtype, kv_heads, head_dim, int8)
    for seed, tensor in enumerate(cache.tensors()):
        drawn = random_normal(*tensor.shape, seed=seed)
        if int8:
            drawn = drawn.mul(40).clamp(-127, 127) if tensor.dtype == torch.int8 else drawn / 40
        tensor.copy_(drawn)
    return cache


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("int8", [False, True], ids=["16 bits", "int8"])
@pytest.mark.parametrize("head_dim", [10, 64])
def test_rope_and_the_write_of_keys_and_values(
    lone_row_kernels: KernelSet, head_dim: int, int8: bool, dtype: torch.dtype
) -> None:
    heads, kv_heads = 3, 1
    qkv = random_normal(ROWS, (heads + 2 * kv_heads) * head_dim).to(dtype)
    angles = random_normal(ROWS, head_dim // 2, seed=6).repeat(1, 2)
    slots = torch.randperm(160, generator=torch.Generator().manual_seed(1))[:ROWS]

    def compute(group: list[int]) -> Tensor:
        """Queries beside what then stands in the cache, all in float64."""
        cache = empty_cache(dtype, kv_heads, head_dim, int8)
        turn = angles[group]
        queries = lone_row_kernels.rope_and_write_kv(
            qkv[group], turn.cos(), turn.sin(), heads, kv_heads, cache, slots[group]
        )
        written = [tensor.view(160, -1)[slots[group]] for tensor in cache.tensors()]
        return torch.cat([part.double() for part in (queries.flatten(1), *written)], dim=-1)

    assert_rows_are_their_own(compute)


def one_sequence(start: int, stop: int, table: list[int]) -> AttentionBatch:
    """The tokens from start to stop of a sequence, in blocks of four."""
    positions = torch.arange(start, stop)
    return AttentionBatch(
        query_starts=torch.tensor([0, stop - start], dtype=torch.int32),
        context_lens=torch.tensor([stop], dtype=torch.int32),
        block_tables=torch.tensor([table], dtype=torch.int32),
        slots=torch.tensor(table)[positions // 4] * 4 + positions % 4,
        positions=positions,
        query_starts_host=(0, stop - start),
        context_lens_host=(stop,),
        block_size=4,
    )


def side_by_side(parts: list[AttentionBatch]) -> AttentionBatch:
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + part.num_rows)
    return AttentionBatch(
        query_starts=torch.tensor(starts, dtype=torch.int32),
        context_lens=torch.cat([part.context_lens for part in parts]),
        block_tables=torch.cat([part.block_tables for part in parts]),
        slots=torch.cat([part.slots for part in parts]),
        positions=torch.cat([part.positions for part in parts]),
        query_starts_host=tuple(starts),
        context_lens_host=tuple(part.context_lens_host[0] for part in parts),
        block_size=4,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("int8", [False, True], ids=["16 bits", "int8"])
@pytest.mark.parametrize("window", [None, 5, 33])
@pytest.mark.parametrize("head_dim", [10, 64])
def test_attention(
    lone_row_kernels: KernelSet, head_dim: int, window: int | None, int8: bool, dtype: torch.dtype
) -> None:
    """A sequence of 70 tokens: as one prefill, in chunks, token by token, and beside another sequence."""
    heads, kv_heads, length = 4, 2, 70
    table, other = list(range(18)), list(range(20, 38))
    cache = drawn_cache(dtype, kv_heads, head_dim, int8)
    q = random_normal(length, heads, head_dim, seed=9).to(dtype)

    def in_chunks(chunk: int) -> Tensor:
        ends = [(start, min(start + chunk, length)) for start in range(0, length, chunk)]
        return torch.cat(
            [lone_row_kernels.attention(q[a:b], cache, one_sequence(a, b, table), 0.3, window) for a, b in ends]
        )

    whole = in_chunks(length)
    for chunk, threads in ((1, 1), (7, 1), (32, 1), (length, 2), (length, 3)):
        with on_threads(threads):
            assert torch.equal(in_chunks(chunk), whole), f"chunks of {chunk} on {threads} threads"
    mixed = side_by_side([one_sequence(0, 50, other), one_sequence(40, length, table), one_sequence(8, 9, other)])
    together = lone_row_kernels.attention(torch.cat((q[:50], q[40:], q[:1])), cache, mixed, 0.3, window)
    assert torch.equal(together[50:80], whole[40:])


@pytest.mark.parametrize("int8", [False, True], ids=["16 bits", "int8"])
@pytest.mark.parametrize("window", [None, 5])
def test_attention_is_that_of_the_reference(lone_row_kernels: KernelSet, window: int | None, int8: bool) -> None:
    cache = drawn_cache(torch.float32, 2, 16, int8)
    q = random_normal(30, 4, 16, seed=9)
    batch = side_by_side([one_sequence(3, 32, list(range(8))), one_sequence(20, 21, list(range(10, 18)))])
    expected = make_kernel_set("reference").attention(q, cache, batch, 0.3, window)
    torch.testing.assert_close(lone_row_kernels.attention(q, cache, batch, 0.3, window), expected, rtol=1e-5, atol=1e-5)


def test_layers_of_one_step_are_expanded_once_and_a_new_step_again(lone_row_kernels: KernelSet) -> None:
    """A stale plan would read the last step's context."""
    cache = drawn_cache(torch.float32, 1, 8, int8=False)
    q = random_normal(3, 2, 8)
    for table in ([1, 2], [5, 6]):
        batch = one_sequence(4, 7, table)
        for window in (None, 3, None):
            expected = make_kernel_set("reference").attention(q, cache, batch, 0.3, window)
            torch.testing.assert_close(lone_row_kernels.attention(q, cache, batch, 0.3, window), expected)
