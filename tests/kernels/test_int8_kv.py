"""INT8 keys and values: what is written, and attention over it against float64 attention over what the codes say."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.paged_steps import (
    BLOCK_SIZE,
    CASES,
    NUM_BLOCKS,
    Case,
    Inputs,
    paged_batch,
    plain_attention,
    random_inputs,
)
from torch import Tensor

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.types import AttentionBatch, KVLayer

IN_ORDER = range(NUM_BLOCKS)
ODD_DECODES = Case(((0, 1), (1, 1), (30, 1), (31, 1), (32, 1), (48, 1)))
"""Contexts around the C++ kernel's tile of 32 tokens."""


def empty_cache(blocks: int, kv_heads: int, head_dim: int, scale: float = 0.0) -> KVLayer:
    """Codes 77 everywhere: nothing may depend on what was there before."""
    rows = (blocks, BLOCK_SIZE, kv_heads)
    codes = (torch.full((*rows, head_dim), 77, dtype=torch.int8) for _ in range(2))
    return KVLayer(*codes, *(torch.full(rows, scale) for _ in range(2)))


def coded(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The definition, each operation rounded once to float32: -> (codes int8, scales float32)."""
    scales = (rows.double().abs().amax(-1) / 127).float()
    return (rows.double() / scales.double().unsqueeze(-1)).float().round().to(torch.int8), scales


def stood_for(inputs: Inputs) -> Inputs:
    """The same step with keys and values as their codes say."""

    def decoded(rows: Tensor) -> Tensor:
        codes, scales = coded(rows)
        return codes.double() * scales.double().unsqueeze(-1)

    return Inputs(inputs.q, [decoded(key) for key in inputs.keys], [decoded(value) for value in inputs.values])


def int8_step(
    case: Case, inputs: Inputs, block_order: Sequence[int], fill: float = 0.0
) -> tuple[KVLayer, AttentionBatch]:
    """Scales of slots that no sequence has are `fill`."""
    batch, own_slots = paged_batch(case, block_order)
    kv_heads, head_dim = inputs.keys[0].shape[1:]
    cache = empty_cache(len(block_order), kv_heads, head_dim, fill)
    for slots, key, value in zip(own_slots, inputs.keys, inputs.values, strict=True):
        for rows, codes, scales in (
            (key, cache.keys, cache.key_scales),
            (value, cache.values, cache.value_scales),
        ):
            assert scales is not None
            codes.view(-1, kv_heads, head_dim)[slots], scales.view(-1, kv_heads)[slots] = coded(rows)
    return cache, batch


@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
@pytest.mark.parametrize(("heads", "kv_heads"), [(3, 3), (9, 3), (4, 1), (16, 2)], ids=["G1", "G3", "G4", "G8"])
def test_decodes_equal_plain_attention(heads: int, kv_heads: int, head_dim: int, kernels: KernelSet) -> None:
    inputs = random_inputs(ODD_DECODES, heads, kv_heads, head_dim)
    scale = head_dim**-0.5
    attended = kernels.attention(inputs.q, *int8_step(ODD_DECODES, inputs, IN_ORDER), scale)
    expected = plain_attention(ODD_DECODES, stood_for(inputs), scale)
    torch.testing.assert_close(attended.double(), expected, atol=4e-6, rtol=1e-5)
    assert kernels.paths["attention"].endswith(", int8 kv")


@pytest.mark.parametrize("window", [None, 1, 5, 17])
@pytest.mark.parametrize("name", CASES)
def test_ragged_batches_equal_plain_attention(name: str, window: int | None, kernels: KernelSet) -> None:
    case = CASES[name]
    inputs = random_inputs(case, heads=6, kv_heads=2)
    attended = kernels.attention(inputs.q, *int8_step(case, inputs, IN_ORDER), 0.3, window)
    expected = plain_attention(case, stood_for(inputs), 0.3, window)
    torch.testing.assert_close(attended.double(), expected, atol=4e-6, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_blocks_and_garbage_in_free_slots_change_no_bit(name: str, kernels: KernelSet) -> None:
    case = CASES[name]
    inputs = random_inputs(case, heads=6, kv_heads=2, head_dim=64)
    clean = kernels.attention(inputs.q, *int8_step(case, inputs, IN_ORDER), 0.125)
    shuffled = random.Random(7).sample(IN_ORDER, NUM_BLOCKS)
    for garbage in (float("nan"), float("inf"), 1e30):
        dirty = kernels.attention(inputs.q, *int8_step(case, inputs, shuffled, garbage), 0.125)
        assert torch.equal(dirty, clean)


def spread(heads: Tensor) -> Tensor:
    """By the matrix itself, in float64: Sylvester's, in blocks of the largest power of two in the size of a head."""
    size = heads.shape[-1]
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while size % (2 * matrix.shape[0]) == 0:
        matrix = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64), matrix) / 2**0.5
    return heads.double() @ torch.block_diag(*[matrix] * (size // matrix.shape[0]))


def written(
    qkv: Tensor, kernels: KernelSet, heads: int, kv_heads: int, angles: Tensor | None = None
) -> tuple[Tensor, list[Tensor], KVLayer]:
    """-> (queries, [key codes, value codes, key scales, value scales] of the rows' slots, the whole cache)."""
    rows, head_dim = qkv.shape[0], qkv.shape[1] // (heads + 2 * kv_heads)
    angles = torch.zeros(rows, head_dim // 2) if angles is None else angles
    turns = torch.cat((angles, angles), dim=-1)
    cache = empty_cache(-(-2 * rows // BLOCK_SIZE), kv_heads, head_dim, scale=-1.0)
    slots = torch.arange(rows) * 2
    queries = kernels.rope_and_write_kv(qkv, turns.cos(), turns.sin(), heads, kv_heads, cache, slots)
    return queries, [tensor.flatten(0, 1)[slots] for tensor in cache.tensors()], cache


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("head_dim", [2, 6, 64, 80])
def test_keys_and_values_are_written_by_the_definition(head_dim: int, dtype: torch.dtype, kernels: KernelSet) -> None:
    heads, kv_heads, rows = 3, 2, 11
    generator = torch.Generator().manual_seed(head_dim)
    qkv = torch.randn(rows, (heads + 2 * kv_heads) * head_dim, generator=generator).to(dtype)
    angles = torch.randn(rows, head_dim // 2, generator=generator)
    queries, (keys, values, key_scales, value_scales), cache = written(qkv, kernels, heads, kv_heads, angles)
    parts = qkv.double().view(rows, -1, head_dim)
    first, second = parts[:, : heads + kv_heads].chunk(2, dim=-1)
    cos, sin = (table.double().unsqueeze(1) for table in (angles.cos(), angles.sin()))
    turned = spread(torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1))

    assert queries.dtype == dtype
    rounding = 2.0**-8 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(queries.double(), turned[:, :heads], rtol=rounding, atol=2e-6)
    expected_codes, expected_scales = coded(parts[:, heads + kv_heads :])
    assert torch.equal(values, expected_codes)
    assert torch.equal(value_scales, expected_scales)
    # The last bits of a rotation are the kernel's own: a code may fall on the other side of a tie.
    expected_codes, expected_scales = coded(turned[:, heads:])
    torch.testing.assert_close(key_scales, expected_scales, rtol=1e-6, atol=0)
    assert (keys.int() - expected_codes.int()).abs().max() <= 1
    assert (keys != expected_codes).float().mean() < 0.01
    others = torch.arange(rows) * 2 + 1
    for tensor, untouched in zip(cache.tensors(), (77, 77, -1.0, -1.0), strict=True):
        assert (tensor.flatten(0, 1)[others] == untouched).all()


def test_queries_and_keys_have_the_products_that_they_have_in_whole_numbers(kernels: KernelSet) -> None:
    """And an outlier that all keys have costs the other numbers little: without spreading, the error is 0.38."""
    generator = torch.Generator().manual_seed(0)
    rows, head_dim = 50, 64
    qkv, angles = torch.randn(rows, 3 * head_dim, generator=generator), torch.zeros(rows, head_dim // 2)
    qkv[:, head_dim] += 20.0
    queries, (codes, _, scales, _), _ = written(qkv, kernels, heads=1, kv_heads=1, angles=angles)
    found = queries[:, 0].double() @ (codes[:, 0].double() * scales[:, 0:1].double()).T
    expected = qkv[:, :head_dim].double() @ qkv[:, head_dim : 2 * head_dim].double().T
    error = (found - expected).square().mean().sqrt()
    assert error < 0.1


TINIEST = 2.0**-149
ROWS = {
    "ties go to the even code": ([127.0, 0.5, 1.5, 2.5, -0.5, -1.5], [127, 0, 2, 2, 0, -2], 1.0),
    "zeros": ([0.0, -0.0, 0.0, 0.0, 0.0, 0.0], [0] * 6, 0.0),
    "both ends": ([254.0, -254.0, 2.0, -2.0, 0.0, 1.0], [127, -127, 1, -1, 0, 0], 2.0),
    "an infinity": ([float("inf"), 1.0, 0.0, 0.0, 0.0, 0.0], [0] * 6, float("inf")),
    "a NaN": ([1.0, float("nan"), 1e30, 0.0, 0.0, 0.0], [0] * 6, float("nan")),
    "too small to be divided": ([TINIEST, 0.0, 0.0, 0.0, 0.0, 0.0], [0] * 6, 0.0),
    "a scale of one digit": ([180 * TINIEST, -180 * TINIEST, 0.0, 0.0, 0.0, 0.0], [127, -127, 0, 0, 0, 0], TINIEST),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_rows_by_hand(name: str, kernels: KernelSet) -> None:
    row, codes, scale = ROWS[name]
    qkv = torch.tensor([row * 3, [1.0] * 18])
    _, (_, values, _, value_scales), _ = written(qkv, kernels, heads=1, kv_heads=1)
    assert values[:, 0].tolist() == [codes, [127] * 6]
    torch.testing.assert_close(value_scales[0], torch.tensor([scale]), rtol=0, atol=0, equal_nan=True)


def test_a_broken_row_is_seen_in_the_result_and_a_zero_row_is_not(kernels: KernelSet) -> None:
    case = Case(((3, 1), (3, 1)))
    inputs = random_inputs(case, heads=2, kv_heads=1)
    cache, batch = int8_step(case, inputs, IN_ORDER)
    assert cache.key_scales is not None
    cache.key_scales.view(-1)[1] = float("inf")
    cache.keys.view(-1, 8)[1] = 0
    cache.key_scales.view(-1)[BLOCK_SIZE + 1] = 0.0
    attended = kernels.attention(inputs.q, cache, batch, 0.3)
    assert attended[0].isnan().all()
    assert attended[1].isfinite().all()


def test_sixteen_bit_queries_over_codes(kernels: KernelSet) -> None:
    inputs = random_inputs(ODD_DECODES, heads=9, kv_heads=3, head_dim=64)
    halved = Inputs(inputs.q.bfloat16(), inputs.keys, inputs.values)
    attended = kernels.attention(halved.q, *int8_step(ODD_DECODES, inputs, IN_ORDER), 0.125)
    assert attended.dtype == torch.bfloat16
    expected = plain_attention(ODD_DECODES, stood_for(halved), 0.125)
    torch.testing.assert_close(attended.double(), expected, atol=0.02, rtol=2.0**-7)


def test_batch_mates_and_threads_change_no_bit_of_a_decode() -> None:
    kernels = kernel_set_or_skip("cpu")
    inputs = random_inputs(ODD_DECODES, heads=9, kv_heads=3, head_dim=64)
    together = kernels.attention(inputs.q, *int8_step(ODD_DECODES, inputs, IN_ORDER), 0.125)
    for index, sequence in enumerate(ODD_DECODES.sequences):
        case = Case((sequence,))
        single = Inputs(inputs.q[index : index + 1], inputs.keys[index : index + 1], inputs.values[index : index + 1])
        alone = kernels.attention(single.q, *int8_step(case, single, IN_ORDER), 0.125)
        assert torch.equal(alone[0], together[index])
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert torch.equal(kernels.attention(inputs.q, *int8_step(ODD_DECODES, inputs, IN_ORDER), 0.125), together)
    finally:
        torch.set_num_threads(before)
