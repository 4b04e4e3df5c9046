"""The likelihood twin against log-probabilities computed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from tests.quality.table_model import TableModel, random_table

from quantgate.quality.likelihood import Censored, TwinResult, mean_logprob, rank_options
from quantgate.quality.quality_model import Continuations, ItemFailure
from quantgate.quality.scores import WholeScores, listed_scores

# Token 0 is followed by 1 with probability 1/2, by 2 with 1/4 and by 3 with 1/4; token 1 always by 2 or 3.
CHAIN = TableModel(
    torch.tensor([[1e-9, 0.5, 0.25, 0.25], [1e-9, 1e-9, 0.5, 0.5], [0.25] * 4, [0.97, 0.01, 0.01, 0.01]]).log()
)


def ranked(model: TableModel, prompt: tuple[int, ...], *options: tuple[int, ...]) -> TwinResult:
    [scored] = model.score([Continuations(prompt, options)])
    assert not isinstance(scored, ItemFailure)
    result = rank_options(scored, options)
    assert isinstance(result, TwinResult)
    return result


def test_mean_over_the_continuation_alone() -> None:
    mean = mean_logprob(WholeScores(CHAIN.table[[0, 1]]), [1, 2])
    assert mean == pytest.approx((math.log(0.5) + math.log(0.5)) / 2, abs=1e-6)


def test_length_is_normalised() -> None:
    """Three tokens of 1/2, 1/2 and 1/4 beat one token of 1/4 per token, though not as a product."""
    result = ranked(CHAIN, (0,), (1, 2, 0), (2,))
    assert result.gold_logprob == pytest.approx((2 * math.log(0.5) + math.log(0.25)) / 3, abs=1e-6)
    assert result.distractor_logprobs == pytest.approx([math.log(0.25)], abs=1e-6)
    assert result.gold_preferred


def test_constant_logits_rank_nothing_whatever_the_lengths() -> None:
    result = ranked(TableModel(torch.zeros(4, 4)), (0,), (1,), (1, 2, 3), (2, 2))
    assert result.gold_margin == pytest.approx(0.0)


def test_a_tie_is_no_preference() -> None:
    assert not TwinResult(-1.0, (-2.0, -1.0)).gold_preferred
    assert TwinResult(-1.0, (-2.0, -1.5)).gold_preferred
    assert TwinResult(-1.0, (-2.0, -1.5)).gold_margin == 0.5


def test_shifted_logits_leave_the_log_probability_as_it_is() -> None:
    table = random_table(5, 9)
    before = mean_logprob(WholeScores(table[:3]), [3, 4, 5])
    assert mean_logprob(WholeScores(table[:3] + 40.0), [3, 4, 5]) == pytest.approx(before, abs=1e-5)


def test_listed_log_probs_are_averaged_as_they_are() -> None:
    gold = listed_scores([-1.0, -2.0], [{}, {}], 1)
    assert mean_logprob(gold, [7, 8]) == -1.5
    assert rank_options([gold, listed_scores([-3.0], [{}], 1)], [(7, 8), (9,)]) == TwinResult(-1.5, (-3.0,))


def test_one_unknown_token_leaves_the_options_unranked() -> None:
    known, unknown = listed_scores([-1.0], [{}], 1), listed_scores([-1.0, None], [{}, {}], 1)
    assert rank_options([known, unknown], [(1,), (2, 3)]) == Censored()
