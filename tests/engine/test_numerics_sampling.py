"""Sampling: the right distribution, and draws that depend on (seed, position) and the row's own logits alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from quantgate_engine.sampling.sampler import SamplingRow, sample
from quantgate_engine.sampling_params import SamplingParams

PROBABILITIES = (0.4, 0.3, 0.15, 0.1, 0.05)
LOGITS = torch.tensor(PROBABILITIES).log()
DRAWS = 4000
HOTTEST = SamplingParams(temperature=1.7e308)


def rows(count: int, params: SamplingParams) -> list[SamplingRow]:
    return [SamplingRow(params, position) for position in range(count)]


def draw_many(params: SamplingParams) -> Counter[int]:
    drawn = sample(LOGITS.expand(DRAWS, -1), rows(DRAWS, params))
    return Counter(token.token_id for token in drawn)


def softmax(logits: Tensor) -> list[float]:
    probabilities: list[float] = logits.double().softmax(0).tolist()
    return probabilities


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (SamplingParams(temperature=1.0), list(PROBABILITIES)),
        (SamplingParams(temperature=2.0), softmax(LOGITS / 2)),
        (SamplingParams(temperature=1.0, top_k=2), [4 / 7, 3 / 7, 0, 0, 0]),
        (SamplingParams(temperature=1.0, top_p=0.75), [0.4 / 0.85, 0.3 / 0.85, 0.15 / 0.85, 0, 0]),
        (SamplingParams(temperature=1.0, top_k=4, top_p=0.7), [4 / 7, 3 / 7, 0, 0, 0]),
        (SamplingParams(temperature=1.0, min_p=0.3), [0.4 / 0.85, 0.3 / 0.85, 0.15 / 0.85, 0, 0]),
        (SamplingParams(temperature=1.0, min_p=0.3, top_p=0.7), [4 / 7, 3 / 7, 0, 0, 0]),
        (SamplingParams(temperature=1.0, top_k=4, min_p=0.3), [0.4 / 0.85, 0.3 / 0.85, 0.15 / 0.85, 0, 0]),
        (SamplingParams(temperature=1.0, top_p=1e-9), [1, 0, 0, 0, 0]),
        (SamplingParams(temperature=1.0, min_p=1.0), [1, 0, 0, 0, 0]),
        (SamplingParams(temperature=1.0, top_k=1), [1, 0, 0, 0, 0]),
        (SamplingParams(temperature=1.0, top_k=9), list(PROBABILITIES)),
    ],
    ids=str,
)
def test_tokens_follow_the_distribution(params: SamplingParams, expected: list[float]) -> None:
    """Draws are seeded: the p-value is a fixed number, not a chance."""
    counts = draw_many(params)
    possible = [token for token, probability in enumerate(expected) if probability > 0]
    assert set(counts) == set(possible)
    observed = [counts[token] for token in possible]
    assert len(possible) == 1 or chisquare(observed, [expected[token] * DRAWS for token in possible]).pvalue > 0.01


def test_greedy_takes_the_largest_whatever_the_seed() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0], [5.0, 3.0, 1.0]])
    drawn = sample(logits, [SamplingRow(SamplingParams(seed=9), 4), SamplingRow(SamplingParams(seed=2), 5)])
    assert [token.token_id for token in drawn] == [1, 0]
    assert drawn[0].logprob is None
    assert drawn[0].top_logprobs == ()


def test_batch_mates_do_not_change_a_draw() -> None:
    logits = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    kinds = [
        SamplingParams(),
        SamplingParams(temperature=1.0, seed=3),
        SamplingParams(temperature=0.7, top_k=10, seed=4),
        SamplingParams(temperature=1.3, top_p=0.9, seed=3, logprobs=2),
        SamplingParams(temperature=1.0, seed=5),
        SamplingParams(logprobs=0),
    ]
    batch = [SamplingRow(params, 10 + index) for index, params in enumerate(kinds)]
    together = sample(logits, batch)
    assert together == [sample(logits[index : index + 1], [row])[0] for index, row in enumerate(batch)]
    assert together[::-1] == sample(logits.flip(0), batch[::-1])


def test_logprobs_are_the_models_own_and_sorted() -> None:
    """Temperature and cuts change the draw, not what the model said."""
    params = SamplingParams(temperature=0.5, top_k=2, seed=1, logprobs=3)
    [token] = sample(LOGITS.unsqueeze(0) + 7.0, [SamplingRow(params, 0)])
    assert token.logprob == pytest.approx(float(LOGITS[token.token_id]), abs=1e-5)
    assert [alternative for alternative, _ in token.top_logprobs] == [0, 1, 2]
    assert [value for _, value in token.top_logprobs] == pytest.approx(LOGITS[:3].tolist(), abs=1e-5)


def test_a_forced_token_is_taken_and_told_about_as_if_it_had_been_drawn() -> None:
    [token] = sample(LOGITS.unsqueeze(0), [SamplingRow(SamplingParams(logprobs=1), 3, forced_token_id=4)])
    assert token.token_id == 4
    assert token.logprob == pytest.approx(float(LOGITS[4]), abs=1e-5)
    assert [alternative for alternative, _ in token.top_logprobs] == [0]


@pytest.mark.parametrize("temperature", [5e-324, 1e-307, 1e-40, 1e-6])
@pytest.mark.parametrize("cuts", [{}, {"top_k": 3}, {"top_p": 0.5}, {"min_p": 0.1}], ids=str)
def test_the_smallest_temperatures_lead_to_the_greedy_token(temperature: float, cuts: dict[str, Any]) -> None:
    for logits in (LOGITS, -1000 * LOGITS.flip(0), torch.tensor([-3e38, 3e38, 1.0, 0.0, -1.0])):
        params = SamplingParams(temperature=temperature, **cuts)
        [drawn] = sample(logits.unsqueeze(0), rows(1, params))
        assert drawn.token_id == int(logits.argmax())


def test_the_largest_temperatures_make_all_tokens_alike() -> None:
    counts = Counter(drawn.token_id for drawn in sample(LOGITS.expand(DRAWS, -1), rows(DRAWS, HOTTEST)))
    assert chisquare([counts[token] for token in range(5)]).pvalue > 0.01
