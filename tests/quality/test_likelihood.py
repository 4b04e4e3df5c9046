"""The likelihood twin against log-probabilities computed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from tests.quality.table_model import TableModel, random_table

from quantgate.quality.likelihood import TwinResult, mean_logprob, rank_options

# Token 0 is followed by 1 with probability 1/2, by 2 with 1/4 and by 3 with 1/4; token 1 always by 2 or 3.
CHAIN = TableModel(
    torch.tensor([[1e-9, 0.5, 0.25, 0.25], [1e-9, 1e-9, 0.5, 0.5], [0.25] * 4, [0.97, 0.01, 0.01, 0.01]]).log()
)


def test_mean_over_the_continuation_alone() -> None:
    assert mean_logprob(CHAIN.table[[0, 1]], [1, 2]) == pytest.approx((math.log(0.5) + math.log(0.5)) / 2, abs=1e-6)


def test_length_is_normalised() -> None:
    """Three tokens of 1/2, 1/2 and 1/4 beat one token of 1/4 per token, though not as a product."""
    result = rank_options(CHAIN, [0], [1, 2, 0], [[2]])
    assert result.gold_logprob == pytest.approx((2 * math.log(0.5) + math.log(0.25)) / 3, abs=1e-6)
    assert result.distractor_logprobs == pytest.approx([math.log(0.25)], abs=1e-6)
    assert result.gold_preferred


def test_constant_logits_rank_nothing_whatever_the_lengths() -> None:
    flat = TableModel(torch.zeros(4, 4))
    result = rank_options(flat, [0], [1], [[1, 2, 3], [2, 2]])
    assert result.gold_margin == pytest.approx(0.0)


def test_a_tie_is_no_preference() -> None:
    assert not TwinResult(-1.0, (-2.0, -1.0)).gold_preferred
    assert TwinResult(-1.0, (-2.0, -1.5)).gold_preferred
    assert TwinResult(-1.0, (-2.0, -1.5)).gold_margin == 0.5


def test_shifted_logits_leave_the_log_probability_as_it_is() -> None:
    table = random_table(5, 9)
    before = mean_logprob(table[:3], [3, 4, 5])
    assert mean_logprob(table[:3] + 40.0, [3, 4, 5]) == pytest.approx(before, abs=1e-5)


def test_all_options_are_scored_after_one_pass_over_the_prompt() -> None:
    model = TableModel(random_table(3, 9))
    rank_options(model, [1, 2], [3, 4], [[5], [6, 7, 8]])
    assert model.logits_calls == [((1, 2), ((3, 4), (5,), (6, 7, 8)), None)]
