"""The lower bound of KL over listed tokens: by hand, against the whole divergence, and at its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quality.table_model import random_table

from quantgate.quality.listed_divergence import compare_listed
from quantgate.quality.scores import ListedScores, WholeScores, listed_scores, reduced
from quantgate.quality.whole_divergence import compare_positions

SIZE = 11


def cut(logits: torch.Tensor, tokens: list[int], alternatives: int) -> ListedScores:
    found = reduced(WholeScores(logits), tokens, alternatives)
    assert isinstance(found, ListedScores)
    return found


def test_worked_by_hand() -> None:
    """p = 1/2 1/4 1/8 1/8, q = 1/4 1/2 1/8 1/8; each lists two; the token is 2: classes 0, 1, 2 and the rest 3."""
    p = listed_scores([math.log(1 / 8)], [{0: math.log(1 / 2), 1: math.log(1 / 4)}], 2)
    q = listed_scores([math.log(1 / 8)], [{1: math.log(1 / 2), 0: math.log(1 / 4)}], 2)
    compared = compare_listed(p, q, [2], 2)
    assert compared is not None
    assert compared.kl == pytest.approx([1 / 2 * math.log(2) - 1 / 4 * math.log(2)], abs=1e-6)
    assert compared.nll_delta == pytest.approx([0.0])
    assert compared.rest == pytest.approx(1 / 8)
    assert not compared.same_top1[0]


def test_tokens_that_one_arm_alone_lists_belong_to_the_rest() -> None:
    """Classes: 0 and the rest; p has 0.6 and 0.4, q 0.2 and 0.8; the token's own log-prob is unknown on q."""
    p = listed_scores([math.log(0.3)], [{0: math.log(0.6), 1: math.log(0.3)}], 2)
    q = listed_scores([None], [{2: math.log(0.7), 0: math.log(0.2)}], 2)
    compared = compare_listed(p, q, [1], 2)
    assert compared is not None
    assert compared.kl == pytest.approx([0.6 * math.log(3) + 0.4 * math.log(0.5)], abs=1e-6)
    assert compared.censored == 1
    assert "nll_delta" not in compared.metrics()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 30.0), st.integers(1, SIZE), st.integers(1, SIZE))
def test_it_is_never_above_the_whole_divergence(seed: int, scale: float, of_p: int, of_q: int) -> None:
    p, q = random_table(seed, SIZE) * scale, random_table(seed + 1, SIZE) * scale
    tokens = list(range(SIZE))
    whole = compare_positions(p, q, tokens)
    compared = compare_listed(cut(p, tokens, of_p), cut(q, tokens, of_q), tokens, of_p)
    assert compared is not None
    assert (compared.kl >= 0).all()
    assert (compared.kl <= whole.kl * (1 + 1e-9) + 1e-12).all()
    assert compared.nll_delta == pytest.approx(whole.nll_delta, rel=1e-12, abs=1e-12)
    assert (compared.same_top1 == whole.same_top1).all()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 10.0))
def test_with_the_whole_vocabulary_listed_it_is_the_divergence(seed: int, scale: float) -> None:
    p, q = random_table(seed, SIZE) * scale, random_table(seed + 1, SIZE) * scale
    tokens = list(range(SIZE))
    compared = compare_listed(cut(p, tokens, SIZE), cut(q, tokens, SIZE), tokens, SIZE)
    assert compared is not None
    assert compared.kl == pytest.approx(compare_positions(p, q, tokens).kl, rel=1e-9, abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, SIZE - 1))
def test_more_listed_tokens_are_no_looser_on_average(seed: int, alternatives: int) -> None:
    """For nested classes the bound grows; here the common tokens of more are a superset of those of fewer."""
    p, q = random_table(seed, SIZE), random_table(seed + 1, SIZE)
    tokens = list(range(SIZE))
    fewer, more = (
        compare_listed(cut(p, tokens, k), cut(q, tokens, k), tokens, k) for k in (alternatives, alternatives + 1)
    )
    assert fewer is not None
    assert more is not None
    assert (fewer.kl <= more.kl + 1e-9).all()


def test_rounding_of_a_server_makes_no_infinite_rest() -> None:
    """Rounded up, the candidate's listed probabilities pass 1, while the baseline's leave a hair."""
    p = listed_scores([math.log(0.5)], [{0: math.log(0.5), 1: math.log(0.5 - 1e-8)}], 2)
    q = listed_scores([math.log(0.5)], [{0: math.log(0.5), 1: math.log(0.5 + 1e-8)}], 2)
    compared = compare_listed(p, q, [0], 2)
    assert compared is not None
    assert compared.kl[0] < 1e-7


def test_a_probability_too_small_for_a_float_is_no_infinite_ratio() -> None:
    p = listed_scores([-1.0], [{0: math.log(0.5), 1: math.log(0.5)}], 2)
    q = listed_scores([-1.0], [{0: 0.0, 1: -800.0}], 2)
    compared = compare_listed(p, q, [2], 2)
    assert compared is not None
    assert compared.kl[0] == pytest.approx(0.5 * math.log(0.5) + 0.5 * (math.log(0.5) + 800), rel=0.01)


def test_positions_that_an_arm_does_not_list_are_left_out() -> None:
    p = listed_scores([-1.0, -1.0], [{0: -0.1}, {0: -0.1}], 1)
    q = listed_scores([None, -1.0], [{}, {0: -0.1}], 1)
    compared = compare_listed(p, q, [0, 0], 1)
    assert compared is not None
    assert compared.positions.tolist() == [1]
    assert compared.censored == 1
    assert "first_token_agreement" not in compared.metrics()
    assert compare_listed(p, listed_scores([None, None], [{}, {}], 1), [0, 0], 1) is None


def test_a_listed_divergence_never_goes_by_the_name_of_kl() -> None:
    p = listed_scores([-1.0], [{0: -0.1}], 1)
    compared = compare_listed(p, p, [0], 1)
    assert compared is not None
    assert set(compared.metrics()) == {
        "kl_topk", "kl_topk_p99", "top1_agreement", "first_token_agreement", "nll_delta", "first_divergence_fraction",
    }  # fmt: skip


def test_scores_are_cut_by_likelihood_and_ties_stand_by_id() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0]])
    found = cut(logits, [0], 3)
    assert found.token_ids.tolist() == [[1, 2, 3]]
    assert found.own == pytest.approx(torch.log_softmax(logits.double(), -1)[:, 0].numpy())
    listed = listed_scores([None], [{3: -1.0, 2: -0.5, 1: -0.5}], 2)
    assert listed.token_ids.tolist() == [[1, 2]]
    again = reduced(listed, [0], 1)
    assert isinstance(again, ListedScores)
    assert again.token_ids.tolist() == [[1]]
    assert np.isnan(again.own[0])
    assert reduced(listed, [0], None) is listed


def test_scores_of_other_lengths_are_refused() -> None:
    p = listed_scores([-1.0], [{0: -0.1}], 1)
    with pytest.raises(ValueError, match="cannot be compared over 2 tokens"):
        compare_listed(p, p, [0, 0], 1)
