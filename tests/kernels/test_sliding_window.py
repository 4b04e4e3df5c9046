"""A window hides all but the last keys: against plain attention that never sees the others."""

from __future__ import annotations

import random

import pytest
import torch
from tests.kernels.paged_steps import CASES, NUM_BLOCKS, Case, paged_step, plain_attention, random_inputs

from quantgate_kernels.kernel_set import KernelSet

IN_ORDER = range(NUM_BLOCKS)
LONGEST = 42
"""Tokens of the longest context among the cases."""
LONG_DECODES = Case(((96, 1), (31, 1), (2, 1)))
"""Several tiles of the C++ kernel, and contexts shorter than most windows."""


@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 8, 17, 41])
@pytest.mark.parametrize("name", CASES)
def test_equals_plain_attention_over_the_window(name: str, window: int, kernels: KernelSet) -> None:
    case = CASES[name]
    inputs = random_inputs(case, heads=6, kv_heads=2)
    attended = kernels.attention(inputs.q, *paged_step(case, inputs, IN_ORDER), scale=0.3, window=window)
    expected = plain_attention(case, inputs, 0.3, window)
    torch.testing.assert_close(attended.double(), expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("window", [1, 31, 32, 33, 64, 96])
def test_windows_that_begin_anywhere_in_a_tile_of_keys(window: int, kernels: KernelSet) -> None:
    inputs = random_inputs(LONG_DECODES, heads=4, kv_heads=1, head_dim=64)
    attended = kernels.attention(inputs.q, *paged_step(LONG_DECODES, inputs, IN_ORDER), scale=0.125, window=window)
    expected = plain_attention(LONG_DECODES, inputs, 0.125, window)
    torch.testing.assert_close(attended.double(), expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("window", [LONGEST, LONGEST + 1, 1 << 40])
@pytest.mark.parametrize("name", CASES)
def test_a_window_that_covers_every_context_changes_no_bit(name: str, window: int, kernels: KernelSet) -> None:
    case = CASES[name]
    inputs = random_inputs(case, heads=6, kv_heads=2)
    step = paged_step(case, inputs, IN_ORDER)
    assert torch.equal(kernels.attention(inputs.q, *step, 0.3, window), kernels.attention(inputs.q, *step, 0.3))


@pytest.mark.parametrize("window", [20, 1 << 40])
def test_a_window_that_covers_one_sequence_changes_no_bit_of_it_among_others(window: int, kernels: KernelSet) -> None:
    """Whether the batch has contexts beyond the window must not matter to those within it."""
    case = Case(((11, 1), (4, 8), (40, 1)))
    inputs = random_inputs(case, heads=6, kv_heads=2)
    step = paged_step(case, inputs, IN_ORDER)
    windowed, whole = kernels.attention(inputs.q, *step, 0.3, window), kernels.attention(inputs.q, *step, 0.3)
    assert torch.equal(windowed[1:9], whole[1:9])
    torch.testing.assert_close(windowed[0], whole[0])
    assert torch.equal(windowed[9], whole[9]) == (window > LONGEST)


@pytest.mark.parametrize("name", CASES)
def test_layers_with_and_without_a_window_share_a_step(name: str, kernels: KernelSet) -> None:
    """Models mix both: a plan must not outlive the layer that it was made for."""
    case = CASES[name]
    inputs = random_inputs(case, heads=6, kv_heads=2)
    step = paged_step(case, inputs, IN_ORDER)
    for window in (3, None, 5, 3, None):
        attended = kernels.attention(inputs.q, *step, 0.3, window)
        expected = plain_attention(case, inputs, 0.3, window)
        torch.testing.assert_close(attended.double(), expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_garbage_before_the_window_and_other_blocks_change_no_bit(name: str, kernels: KernelSet) -> None:
    """Only what no row of the step sees may hold garbage; blocks before the window may have been given away."""
    case, window = CASES[name], 3
    inputs = random_inputs(case, heads=6, kv_heads=2)
    order = random.Random(5).sample(IN_ORDER, NUM_BLOCKS)
    clean = kernels.attention(inputs.q, *paged_step(case, inputs, IN_ORDER), 0.3, window)
    for (past, _), key, value in zip(case.sequences, inputs.keys, inputs.values, strict=True):
        hidden = max(0, past - window + 1)
        key[:hidden] = value[:hidden] = float("nan")
    dirty = kernels.attention(inputs.q, *paged_step(case, inputs, order, fill=float("nan")), 0.3, window)
    assert torch.equal(dirty, clean)
