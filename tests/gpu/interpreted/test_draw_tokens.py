"""Tokens drawn by noise of (seed, position, token id): the bits, the noise and the winners of the engine's sampling."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_engine.sampling import noise as engine_noise
from quantgate_engine.sampling.draw import draw_token
from quantgate_engine.sampling_params import SamplingParams
from quantgate_kernels.gpu.draw_tokens import draw_tokens
from quantgate_kernels.gpu.gumbel_noise import exponential, gumbel_noise, random_bits

WORD = engine_noise.WORD
SEEDS = [(0, 0), (1, 1), (123456789012345, 4096), (2**63 + 5, 7), (2**64 - 3, 2**40)]
"""With positions."""


def numpy_bits(seed: int, position: int, count: int) -> np.ndarray:
    generator = np.random.Philox(key=seed % WORD, counter=(position % WORD) * WORD)
    return generator.random_raw((count + 1) // 2).view(np.uint32)[:count]


def signed(number: int) -> int:
    return (number + 2**63) % WORD - 2**63


@triton.jit
def noise_kernel(seeds, positions, bits, noise, first, COUNTERS: tl.constexpr):
    seed, position = tl.load(seeds).to(tl.uint64), tl.load(positions).to(tl.uint64)
    places = tl.arange(0, 8 * COUNTERS)
    tl.store(bits + places, random_bits(seed, position, first, COUNTERS).to(tl.int32, bitcast=True))
    tl.store(noise + places, gumbel_noise(seed, position, first, COUNTERS))


@pytest.mark.parametrize(("seed", "position"), SEEDS)
@pytest.mark.parametrize("first", [0, 5])
def test_bits_and_noise(seed: int, position: int, first: int) -> None:
    counters = 64
    bits, noise = torch.empty(8 * counters, dtype=torch.int32), torch.empty(8 * counters)
    key = [torch.tensor([signed(number)]) for number in (seed, position)]
    noise_kernel[(1,)](*key, bits, noise, first, COUNTERS=counters)
    count = 8 * (first + counters)
    assert np.array_equal(bits.numpy().view(np.uint32), numpy_bits(seed, position, count)[8 * first :])
    engines = engine_noise.gumbel_noise(seed, position, count)[8 * first :]
    np.testing.assert_allclose(noise.numpy(), engines, rtol=0, atol=2.5e-6)


@triton.jit
def exponential_kernel(uniform, exponentials, COUNT: tl.constexpr):
    places = tl.arange(0, COUNT)
    tl.store(exponentials + places, exponential(tl.load(uniform + places)))


def draw(logits: Tensor, temperature: float, min_p: float, seeds: list[tuple[int, int]]) -> Tensor:
    rows = logits.shape[0]
    keys = [torch.tensor([signed(pair[part]) for pair in seeds]) for part in range(2)]
    return draw_tokens(logits, torch.full((rows,), temperature), torch.full((rows,), min_p), *keys)


def winner(logits: Tensor, temperature: float, min_p: float, seed: int, position: int) -> int:
    return draw_token(logits.numpy(), SamplingParams(temperature=temperature, min_p=min_p, seed=seed), position)


@pytest.mark.parametrize(
    ("temperature", "min_p", "vocabulary"), [(1.0, 0.0, 2500), (0.7, 0.0, 1024), (2.0, 0.05, 1025), (1e-30, 0.0, 100)]
)
def test_tokens(temperature: float, min_p: float, vocabulary: int) -> None:
    logits = torch.randn(len(SEEDS), vocabulary, generator=torch.Generator().manual_seed(0)) * 2
    drawn = draw(logits, temperature, min_p, SEEDS)
    assert drawn.tolist() == [
        winner(row, temperature, min_p, *pair) for row, pair in zip(logits, SEEDS, strict=True)
    ]  # fmt: skip


def test_the_tokens_of_many_positions() -> None:
    """Flat logits, of which the noise alone decides: 40 tokens of 300, and hardly one twice."""
    positions = range(1000, 1040)
    drawn = draw(torch.zeros(len(positions), 300), 1.0, 0.0, [(7, position) for position in positions]).tolist()
    assert drawn == [winner(torch.zeros(300), 1.0, 0.0, 7, position) for position in positions]
    assert len(set(drawn)) > 30


def test_greedy_rows_take_the_first_of_the_greatest_logits() -> None:
    logits = torch.zeros(2, 3000)
    logits[0, [1500, 2900]] = 3.0
    logits[1, 2999] = 1e-30
    assert draw(logits, 0.0, 0.0, SEEDS[:2]).tolist() == [1500, 2999]


def test_each_row_has_its_own_parameters() -> None:
    logits = torch.randn(3, 300, generator=torch.Generator().manual_seed(1))
    seeds = torch.tensor([5, 6, 5])
    positions = torch.tensor([9, 9, 10])
    temperatures, min_p = torch.tensor([0.0, 1.5, 1.0]), torch.tensor([0.0, 0.0, 0.2])
    drawn = draw_tokens(logits, temperatures, min_p, seeds, positions)
    assert drawn.tolist() == [
        int(logits[0].argmax()), winner(logits[1], 1.5, 0.0, 6, 9), winner(logits[2], 1.0, 0.2, 5, 10),
    ]  # fmt: skip


def test_min_p_of_one_keeps_the_greatest_of_its_own_row_alone() -> None:
    logits = torch.zeros(2, 300)
    logits[:, 250] = 0.5
    keys = [torch.tensor([number] * 2) for number in (5, 9)]
    drawn = draw_tokens(logits, torch.ones(2), torch.tensor([0.0, 1.0]), *keys)
    assert drawn.tolist() == [winner(logits[0], 1.0, 0.0, 5, 9), 250]
    assert drawn[0] != 250


def test_exponentials_lose_no_digits_where_the_uniform_numbers_are_small() -> None:
    """From such come the tokens that win. The series ends, and the logarithm begins, at an eighth."""
    uniform = torch.tensor([2.0**-33, 1e-6, 0.1, 0.12499, 0.125, 0.5, 0.9, 1 - 2.0**-24])
    exponentials = torch.empty(8)
    exponential_kernel[(1,)](uniform, exponentials, COUNT=8)
    np.testing.assert_allclose(exponentials.numpy(), -np.log1p(-uniform.double().numpy()), rtol=2.5e-7)
