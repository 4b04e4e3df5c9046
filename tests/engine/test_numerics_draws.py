"""Draws are right by themselves, and coupled: logits and cuts that hardly differ draw the same tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare, gumbel_r, kstest

from quantgate_engine.sampling.draw import draw_token
from quantgate_engine.sampling.noise import gumbel_noise
from quantgate_engine.sampling.seeds import derived_seed
from quantgate_engine.sampling_params import SamplingParams

VOCABULARY = 49_152
WARM = SamplingParams(temperature=1.0, seed=11)


def model_like_logits(seed: int = 0, tokens: int = VOCABULARY) -> NDArray[np.float32]:
    """A few likely tokens and a long tail, as models give them: about half of the mass on ten tokens."""
    generator = np.random.default_rng(seed)
    ranks = generator.permutation(tokens) + 1
    return (-1.3 * np.log(ranks) + generator.normal(0, 0.3, tokens)).astype(np.float32)


def with_small_errors(logits: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    return logits + np.random.default_rng(1).normal(0, sigma, len(logits)).astype(np.float32)


def drawn(logits: NDArray[np.float32], params: SamplingParams = WARM, draws: int = 1000) -> NDArray[np.int64]:
    return np.array([draw_token(logits, params, position) for position in range(draws)])


def probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return weights / weights.sum()


def test_noise_is_gumbels_over_tokens_positions_and_seeds() -> None:
    assert kstest(gumbel_noise(7, 3, VOCABULARY), gumbel_r.cdf).pvalue > 0.01
    over_positions = [gumbel_noise(7, position, 12)[11] for position in range(4000)]
    over_seeds = [gumbel_noise(seed, 7, 12)[11] for seed in range(4000)]
    assert kstest(over_positions, gumbel_r.cdf).pvalue > 0.01
    assert kstest(over_seeds, gumbel_r.cdf).pvalue > 0.01


def test_noise_of_neighbours_is_unrelated() -> None:
    """Of tokens, positions and seeds; a counter that ran on into the next position's would show as equal numbers."""
    noise = gumbel_noise(7, 3, VOCABULARY)
    streams = [gumbel_noise(7, 4, VOCABULARY), gumbel_noise(8, 3, VOCABULARY), gumbel_noise(7, 2**40, VOCABULARY)]
    for other in [np.roll(noise, 1), np.roll(noise, 8), *streams, *(np.roll(stream, 8) for stream in streams)]:
        assert abs(np.corrcoef(noise, other)[0, 1]) < 4 / np.sqrt(VOCABULARY)
        assert np.mean(noise == other) < 0.001


def test_noise_of_a_token_depends_on_no_other() -> None:
    noise = gumbel_noise(5, 9, VOCABULARY)
    assert np.array_equal(gumbel_noise(5, 9, 101), noise[:101])
    token_ids = np.array([40_000, 3, 17])
    assert np.array_equal(gumbel_noise(5, 9, VOCABULARY, token_ids), noise[token_ids])


def test_noise_takes_any_integer_seed_and_is_always_finite() -> None:
    assert np.array_equal(gumbel_noise(-1, 0, 8), gumbel_noise(2**64 - 1, 0, 8))
    assert len({float(gumbel_noise(seed, 0, 8)[0]) for seed in (0, 1, -1, 2**63)}) == 4
    assert np.isfinite(gumbel_noise(0, 0, 2_000_000)).all()


@pytest.mark.parametrize("bits", [0, 2**32 - 1])
def test_the_rarest_bits_are_finite_noise(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Extreme:
        def __init__(self, **_: int) -> None:
            pass

        def random_raw(self, count: int) -> NDArray[np.uint64]:
            return np.full(2 * count, bits, np.uint32).view(np.uint64)

    monkeypatch.setattr(np.random, "Philox", Extreme)
    assert gumbel_noise(0, 0, 4) == pytest.approx(np.log(2**33) if bits == 0 else -np.log(24 * np.log(2)), rel=1e-6)


@pytest.mark.parametrize("temperature", [0.7, 1.0, 3.0])
def test_a_large_vocabulary_is_drawn_from_as_its_softmax_says(temperature: float) -> None:
    """By the ten likeliest tokens, and the others in eight classes by rank. Seeded: the p-value is a fixed number."""
    logits = model_like_logits(tokens=2000)
    params = SamplingParams(temperature=temperature, seed=5)
    order = np.argsort(-logits)
    classes = np.empty(len(logits), np.int64)
    classes[order] = np.concatenate([np.arange(10), 10 + np.arange(len(logits) - 10) * 8 // (len(logits) - 10)])
    counts = np.bincount(classes[drawn(logits, params, 8000)], minlength=18)
    expected = np.bincount(classes, weights=probabilities(logits / np.float32(temperature)))
    assert chisquare(counts, 8000 * expected).pvalue > 0.01


def test_draws_at_neighbouring_positions_are_independent() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.2], np.float32))
    tokens = drawn(logits, draws=6000)
    pairs = np.bincount(3 * tokens[::2] + tokens[1::2], minlength=9)
    share = probabilities(logits)
    assert chisquare(pairs, 3000 * np.outer(share, share).ravel()).pvalue > 0.01


def test_forks_with_derived_seeds_draw_apart() -> None:
    logits = model_like_logits()
    forks = [drawn(logits, SamplingParams(temperature=1.0, seed=derived_seed(4, index)), 200) for index in range(3)]
    chance = float(np.square(probabilities(logits)).sum())
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.mean(forks[first] == forks[second]) - chance) < 0.08


@pytest.mark.parametrize("cuts", [{}, {"top_k": 50}, {"top_p": 0.9}, {"min_p": 0.02}], ids=str)
def test_small_errors_of_the_logits_change_few_draws(cuts: dict[str, Any]) -> None:
    """Errors of 0.005 change 4 or 5 of 1,000 draws here.

    To invert the distribution function, whose sums move a little everywhere, would change 160 of them.
    """
    logits = model_like_logits()
    params = SamplingParams(temperature=1.0, seed=11, **cuts)
    changed = np.mean(drawn(logits, params) != drawn(with_small_errors(logits, 0.005), params))
    assert changed < 0.01


@pytest.mark.parametrize(
    "cuts", [{"top_k": 40}, {"top_p": 0.8}, {"min_p": 0.01}, {"top_k": 300, "top_p": 0.9}], ids=str
)
def test_a_cut_changes_only_the_draws_whose_token_it_takes_out(cuts: dict[str, Any]) -> None:
    logits = model_like_logits()
    uncut, cut = drawn(logits), drawn(logits, SamplingParams(temperature=1.0, seed=11, **cuts))
    kept = np.isin(uncut, cut)
    assert 0.2 < np.mean(kept) < 0.98
    assert np.array_equal(uncut[kept], cut[kept])


def test_a_wider_cut_keeps_what_a_narrower_one_draws() -> None:
    logits = model_like_logits()
    for name, values in {"top_k": (5, 50, 500), "top_p": (0.3, 0.6, 0.95), "min_p": (0.2, 0.02, 0.002)}.items():
        narrow, middle, wide = (
            drawn(logits, SamplingParams(temperature=1.0, seed=11, **{name: value}), 300) for value in values
        )
        assert np.all((middle == wide) | ~np.isin(wide, middle))
        assert np.all((narrow == middle) | ~np.isin(middle, narrow))


@pytest.mark.parametrize("cuts", [{}, {"top_k": 3}, {"top_p": 0.5}, {"min_p": 0.5}], ids=str)
@pytest.mark.parametrize("temperature", [5e-324, 1.0, 1.7e308])
def test_a_token_that_alone_is_possible_is_drawn(cuts: dict[str, Any], temperature: float) -> None:
    logits = np.full(1000, -np.inf, np.float32)
    logits[613] = -4.0
    params = SamplingParams(temperature=temperature, **cuts)
    assert set(drawn(logits, params, 20)) == {613}
    assert draw_token(np.zeros(1, np.float32), params, 0) == 0


def test_of_tokens_as_likely_as_each_other_the_first_are_kept() -> None:
    """Whatever the machine's way of sorting."""
    alike = np.zeros(8, np.float32)
    assert set(drawn(alike, SamplingParams(temperature=1.0, top_k=3), 100)) == {0, 1, 2}
    assert set(drawn(alike, SamplingParams(temperature=1.0, top_p=0.5), 100)) == {0, 1, 2, 3}
    ahead = np.array([0, 0, 1, 0, 0], np.float32)
    assert set(drawn(ahead, SamplingParams(temperature=1.0, top_k=3), 100)) == {0, 1, 2}


def test_drawing_leaves_the_logits_as_they_are() -> None:
    logits = model_like_logits(tokens=500)
    before = logits.copy()
    for cuts in ({}, {"top_k": 5}, {"top_p": 0.2}, {"min_p": 0.9}):
        draw_token(logits, SamplingParams(temperature=0.5, **cuts), 0)
    assert np.array_equal(logits, before)
