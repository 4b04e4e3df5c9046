"""Paged attention against plain attention over each sequence's own keys."""

from __future__ import annotations

import random

import pytest
import torch
from tests.kernels.paged_steps import CASES, NUM_BLOCKS, paged_step, plain_attention, random_inputs

from quantgate_kernels.kernel_set import KernelSet

IN_ORDER = range(NUM_BLOCKS)


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (6, 2), (4, 1)], ids=["group 1", "group 3", "group 4"])
@pytest.mark.parametrize("name", CASES)
def test_equals_plain_attention(name: str, heads: int, kv_heads: int, kernels: KernelSet) -> None:
    case = CASES[name]
    inputs = random_inputs(case, heads, kv_heads)
    attended = kernels.attention(inputs.q, *paged_step(case, inputs, IN_ORDER), scale=0.3)
    torch.testing.assert_close(attended.double(), plain_attention(case, inputs, 0.3), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_which_blocks_hold_a_sequence_changes_no_bit(name: str, kernels: KernelSet) -> None:
    case = CASES[name]
    inputs = random_inputs(case, heads=6, kv_heads=2)
    shuffled = random.Random(7).sample(IN_ORDER, NUM_BLOCKS)
    expected = kernels.attention(inputs.q, *paged_step(case, inputs, IN_ORDER), scale=0.3)
    assert torch.equal(kernels.attention(inputs.q, *paged_step(case, inputs, shuffled), scale=0.3), expected)


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("name", CASES)
def test_garbage_in_free_slots_changes_no_bit(name: str, garbage: float, kernels: KernelSet) -> None:
    """Free blocks, and the slots of a sequence's last block that it has not reached, may hold anything.

    Block 0, which pads the block tables, is left free here.
    """
    case = CASES[name]
    inputs = random_inputs(case, heads=6, kv_heads=2)
    order = [*range(1, NUM_BLOCKS), 0]
    clean = kernels.attention(inputs.q, *paged_step(case, inputs, order), scale=0.3)
    dirty = kernels.attention(inputs.q, *paged_step(case, inputs, order, garbage), scale=0.3)
    assert torch.equal(dirty, clean)


def test_a_second_batch_is_planned_anew(kernels: KernelSet) -> None:
    for name in ("prefill", "mixed"):
        inputs = random_inputs(CASES[name], heads=4, kv_heads=2)
        attended = kernels.attention(inputs.q, *paged_step(CASES[name], inputs, IN_ORDER), scale=0.5)
        expected = plain_attention(CASES[name], inputs, 0.5)
        torch.testing.assert_close(attended.double(), expected, atol=2e-6, rtol=1e-5)
