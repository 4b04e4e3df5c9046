"""Rope and the KV write against float64 and against the reference set, in 16 bits and as INT8 codes."""

from __future__ import annotations

import pytest
import torch
from tests.gpu.float64_attention import hadamard, rotated
from torch import Tensor

from quantgate_kernels.gpu.rotate_and_write import rotate_and_write
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.types import KVLayer

BLOCKS, BLOCK_SIZE = 6, 4
HEADS, KV_HEADS = 3, 2
ROUNDING = {torch.float32: 3e-7, torch.float16: 1e-3, torch.bfloat16: 8e-3}
"""Of a number of the dtype, relative, with the float32 arithmetic before it."""


def inputs(rows: int, head_dim: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """qkv with an outlier in each head, cos and sin of random positions, and slots in no order."""
    generator = torch.Generator().manual_seed(rows)
    qkv = torch.randn(rows, HEADS + 2 * KV_HEADS, head_dim, generator=generator)
    qkv[..., 3] *= 20
    angles = torch.rand(rows, head_dim // 2, generator=generator) * 6
    angles = torch.cat((angles, angles), 1)
    slots = torch.randperm(BLOCKS * BLOCK_SIZE, generator=generator)[:rows]
    return qkv.view(rows, -1).to(dtype), angles.cos(), angles.sin(), slots


def empty_cache(head_dim: int, dtype: torch.dtype) -> KVLayer:
    """Full of what no result may keep or change."""
    shape = (BLOCKS, BLOCK_SIZE, KV_HEADS)
    pair = [torch.full((*shape, head_dim), 77).to(dtype) for _ in range(2)]
    scales = [torch.full(shape, 77.0) for _ in range(2)] if dtype == torch.int8 else []
    return KVLayer(*pair, *scales)


def rows_at(tensor: Tensor, slots: Tensor) -> Tensor:
    return tensor.view(-1, *tensor.shape[2:])[slots]


def assert_others_untouched(cache: KVLayer, slots: Tensor) -> None:
    others = torch.ones(BLOCKS * BLOCK_SIZE, dtype=torch.bool)
    others[slots] = False
    for tensor in cache.tensors():
        assert (tensor.view(-1, *tensor.shape[2:])[others] == 77).all()


@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
def test_sixteen_bits(head_dim: int, dtype: torch.dtype) -> None:
    qkv, cos, sin, slots = inputs(5, head_dim, dtype)
    cache = empty_cache(head_dim, dtype)
    queries = rotate_and_write(qkv, cos, sin, HEADS, KV_HEADS, cache, slots)
    heads = qkv.view(5, -1, head_dim)
    turned = rotated(heads[:, : HEADS + KV_HEADS], cos, sin)
    near = {"atol": ROUNDING[dtype] * 4, "rtol": ROUNDING[dtype]}
    torch.testing.assert_close(queries.double(), turned[:, :HEADS], **near)
    torch.testing.assert_close(rows_at(cache.keys, slots).double(), turned[:, HEADS:], **near)
    assert torch.equal(rows_at(cache.values, slots), heads[:, HEADS + KV_HEADS :])
    assert_others_untouched(cache, slots)


@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
def test_codes(head_dim: int, dtype: torch.dtype) -> None:
    qkv, cos, sin, slots = inputs(4, head_dim, dtype)
    cache = empty_cache(head_dim, torch.int8)
    queries = rotate_and_write(qkv, cos, sin, HEADS, KV_HEADS, cache, slots)
    heads = qkv.view(4, -1, head_dim)
    turned = rotated(heads[:, : HEADS + KV_HEADS], cos, sin) @ hadamard(head_dim)
    near = {"atol": ROUNDING[dtype] * 8, "rtol": ROUNDING[dtype]}
    torch.testing.assert_close(queries.double(), turned[:, :HEADS], **near)
    for stored, scales, exact in (
        (cache.keys, cache.key_scales, turned[:, HEADS:]),
        (cache.values, cache.value_scales, heads[:, HEADS + KV_HEADS :].double()),
    ):
        largest = exact.abs().amax(-1)
        torch.testing.assert_close(rows_at(scales, slots).double(), largest / 127, atol=0, rtol=1e-6)
        error = (rows_at(stored, slots).double() * largest[..., None] / 127 - exact).abs()
        assert (error <= largest[..., None] / 127 * 0.5001).all()
    assert_others_untouched(cache, slots)


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
def test_the_reference_writes_the_same(kv_dtype: torch.dtype) -> None:
    """To the bit for values; rotated keys and queries may differ where a sum lies between two numbers."""
    qkv, cos, sin, slots = inputs(6, 80, torch.float16)
    ours, theirs = empty_cache(80, kv_dtype), empty_cache(80, kv_dtype)
    queries = rotate_and_write(qkv, cos, sin, HEADS, KV_HEADS, ours, slots)
    expected = ReferenceKernels().rope_and_write_kv(qkv, cos, sin, HEADS, KV_HEADS, theirs, slots)
    torch.testing.assert_close(queries, expected, atol=1e-6, rtol=2**-10)
    for our, their, one_step in zip(ours.tensors(), theirs.tensors(), (2**-10, 0, 1e-6, 0), strict=False):
        if our.dtype == torch.int8:
            different = (our.int() - their.int()).abs()
            assert different.max() <= bool(one_step)
            assert different.float().mean() < 0.001
        else:
            torch.testing.assert_close(our, their, atol=0, rtol=one_step)


@pytest.mark.parametrize("rows", [127, 129])
def test_many_rows_and_a_last_tile_that_is_not_full(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(rows, 3 * 64, generator=generator)
    angles = torch.rand(rows, 32, generator=generator).repeat(1, 2)
    cache = KVLayer(*(torch.zeros(rows, 1, 1, 64) for _ in range(2)))
    slots = torch.randperm(rows, generator=generator)
    queries = rotate_and_write(qkv, angles.cos(), angles.sin(), 1, 1, cache, slots)
    turned = rotated(qkv.view(rows, 3, 64)[:, :2], angles.cos(), angles.sin())
    torch.testing.assert_close(queries.double(), turned[:, :1], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(rows_at(cache.keys, slots).double(), turned[:, 1:], atol=1e-6, rtol=1e-6)


def test_rows_that_pad_a_graph_write_nothing() -> None:
    for kv_dtype in (torch.float16, torch.int8):
        qkv, cos, sin, slots = inputs(4, 64, torch.float16)
        slots[2] = -1
        cache = empty_cache(64, kv_dtype)
        rotate_and_write(qkv, cos, sin, HEADS, KV_HEADS, cache, slots)
        assert_others_untouched(cache, slots[[0, 1, 3]])


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_broken_values_break_their_keys_and_multiply_nothing(broken: float, kv_dtype: torch.dtype) -> None:
    """Of the second head: its neighbours in the row and in the cache stay as they are."""
    qkv, cos, sin, slots = inputs(3, 64, torch.float16)
    clean, cache = empty_cache(64, kv_dtype), empty_cache(64, kv_dtype)
    rotate_and_write(qkv, cos, sin, HEADS, KV_HEADS, clean, slots)
    qkv.view(3, -1, 64)[1, -1, 5] = broken
    rotate_and_write(qkv, cos, sin, HEADS, KV_HEADS, cache, slots)
    keys = rows_at(cache.keys if cache.key_scales is None else cache.key_scales, slots)
    assert keys[1, 1].isnan().any()
    assert (rows_at(cache.values, slots)[1, 1] == 0).all()
    for ours, theirs in zip(cache.tensors(), clean.tensors(), strict=True):
        broken_row = slots[1] * KV_HEADS + 1
        ours.view(BLOCKS * BLOCK_SIZE * KV_HEADS, -1)[broken_row] = 0
        theirs.view(BLOCKS * BLOCK_SIZE * KV_HEADS, -1)[broken_row] = 0
        assert torch.equal(ours, theirs)


def test_a_row_of_zeros_has_scale_zero() -> None:
    qkv, cos, sin, slots = inputs(2, 64, torch.float16)
    qkv[1] = 0
    cache = empty_cache(64, torch.int8)
    rotate_and_write(qkv, cos, sin, HEADS, KV_HEADS, cache, slots)
    for stored, scales in ((cache.keys, cache.key_scales), (cache.values, cache.value_scales)):
        assert (rows_at(stored, slots)[1] == 0).all()
        assert (rows_at(scales, slots)[1] == 0).all()


def test_ties_go_to_even_codes() -> None:
    qkv, cos, sin, slots = inputs(1, 64, torch.float32)
    row = torch.zeros(64)
    row[:6] = torch.tensor([127.0, 0.5, 1.5, 2.5, -0.5, -1.5])
    qkv.view(1, -1, 64)[0, -1] = row
    cache = empty_cache(64, torch.int8)
    rotate_and_write(qkv, cos, sin, HEADS, KV_HEADS, cache, slots)
    assert rows_at(cache.values, slots)[0, -1, :6].tolist() == [127, 0, 2, 2, 0, -2]
