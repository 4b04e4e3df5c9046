"""The benchmark of agreement with float32, on scripted logits: what it counts, and on which texts."""

from __future__ import annotations

import pytest
import torch
from benchmarks.agreement import BASELINE, compare_arms, cut, described, drawn_in_turn, paired_difference, written_texts
from torch import Tensor

from quantgate.resources import bundled_root
from quantgate.workload.sample_drawing.texts import read_texts

VOCABULARY = 5


def likeliest(choices: list[int]) -> Tensor:
    """Logits whose row i has its maximum at choices[i]."""
    return torch.nn.functional.one_hot(torch.tensor(choices), VOCABULARY) * 3.0


def test_positions_are_counted_once_in_each_arm_and_the_last_token_predicts_nothing() -> None:
    answers = {
        (0, 1, 2): {"reference": [1, 2, 0], BASELINE: [1, 3, 0], "quantgate fp16": [1, 2, 4]},
        (3, 4): {"reference": [4, 0], BASELINE: [4, 1], "quantgate fp16": [2, 0]},
    }
    reference, *arms = (
        (name, lambda tokens, name=name: likeliest(answers[tuple(tokens)][name]))
        for name in ("reference", BASELINE, "quantgate fp16")
    )
    tallies = compare_arms(reference[1], dict(arms), [list(tokens) for tokens in answers])
    assert tallies[BASELINE].agrees().tolist() == [True, False, True]
    assert tallies["quantgate fp16"].agrees().tolist() == [True, True, False]
    figures = tallies["quantgate fp16"].figures()
    assert (figures["agreeing"], figures["positions"]) == (2, 3)
    assert figures["top1_agreement"] == pytest.approx(2 / 3)
    assert figures["mean_kl_nats"] > 0
    exact = compare_arms(reference[1], {"itself": reference[1]}, [[0, 1, 2], [3, 4]])["itself"].figures()
    assert (exact["top1_agreement"], exact["mean_kl_nats"]) == (1.0, 0.0)


def test_the_difference_is_told_in_points_with_its_counts() -> None:
    candidate = torch.tensor([True] * 90 + [False] * 8 + [True] * 2).numpy()
    baseline = torch.tensor([True] * 90 + [True] * 5 + [False] * 5).numpy()
    paired = paired_difference(candidate, baseline)
    low, high = paired.pop("interval_95_points")
    assert paired == {
        "difference_points": -3.0,
        "only_candidate_agrees": 2,
        "only_baseline_agrees": 5,
        "both_agree": 90,
        "neither_agrees": 3,
    }
    assert low < -3.0 < 0.0 < high
    words = described(
        {
            "model": "some-model",
            "arms": {
                BASELINE: {"top1_agreement": 0.95, "agreeing": 95, "positions": 100, "mean_kl_nats": 0.001},
                "quantgate fp16": {"top1_agreement": 0.92, "agreeing": 92, "positions": 100, "mean_kl_nats": 0.002},
            },
            f"against {BASELINE}": {"quantgate fp16": {**paired, "interval_95_points": [low, high]}},
        }
    )
    assert "quantgate fp16: 92.00% (92 of 100 positions), mean KL 0.00200 nats" in words
    assert f"quantgate fp16 less {BASELINE}: -3.00 points" in words
    assert "only the first agrees at 2 positions, only the second at 5" in words


def test_texts_are_cut_whole_and_drawn_in_turn() -> None:
    assert cut(list(range(7)), 3) == [[0, 1, 2], [3, 4, 5]]
    assert cut(list(range(8)), 3)[-1] == [6, 7]
    texts = [[[1, 2], [3, 4], [5, 6]], [[7, 8, 9]]]
    assert drawn_in_turn(texts, None) == [[1, 2], [7, 8, 9], [3, 4], [5, 6]]
    assert drawn_in_turn(texts, 2) == [[1, 2], [7, 8, 9]]
    assert drawn_in_turn(texts, 3) == [[1, 2], [7, 8, 9]]
    assert drawn_in_turn(texts, 4) == [[1, 2], [7, 8, 9], [3, 4]]


def test_the_authored_texts_are_long_enough() -> None:
    """Three kinds; thousands of positions at four characters a token."""
    texts = written_texts(read_texts(bundled_root() / "replay_samples" / "texts"))
    assert len(texts) == 3
    assert sum(map(len, texts)) > 4 * 8000
    assert texts[1].startswith("A: ")
    assert "\nB: " in texts[1]
