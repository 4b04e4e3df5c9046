"""The bootstrap's estimates by hand, its coverage by simulation, and its agreement with its own p-value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from quantgate.stats.bootstrap import bootstrap_means, bootstrap_percentiles, difference, relative
from quantgate.stats.clusters import cluster_numbers, design_effect, run_length
from quantgate.stats.interval import Interval, LossEstimate, size_of_change

SETTINGS = {"margin": 0.1, "confidence": 0.95, "resamples": 1000, "seed": 5}


def _pairs(
    rng: np.random.Generator, clusters: int, size: int, shared: float, own: float, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two arms' times of the same items, alike in truth but for `shift`: noise by cluster and arm, by item and arm."""
    labels = np.repeat(np.arange(clusters), size)
    items = rng.normal(0, 0.4, clusters * size)
    baseline, candidate = (
        np.exp(items + rng.normal(0, shared, clusters)[labels] + rng.normal(0, own, clusters * size)) for _ in range(2)
    )
    return baseline, candidate * np.exp(shift), labels


def test_estimates_are_those_of_the_sample() -> None:
    baseline, candidate = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 2.0, 3.0, 9.0])
    labels = np.arange(4)
    assert bootstrap_means(baseline, candidate, labels, difference, **SETTINGS).value == pytest.approx(1.5)
    assert bootstrap_means(baseline, candidate, labels, relative, **SETTINGS).value == pytest.approx(0.6)
    median = bootstrap_percentiles(baseline, candidate, labels, relative, quantile=0.5, **SETTINGS)
    assert median.value == pytest.approx(0.0)


def test_a_constant_factor_is_found_exactly_and_surely() -> None:
    baseline = np.random.default_rng(1).lognormal(0, 0.5, 200)
    found = bootstrap_percentiles(baseline, 1.5 * baseline, np.arange(200), relative, quantile=0.95, **SETTINGS)
    assert found.value == pytest.approx(0.5)
    assert found.interval == pytest.approx((0.5, 0.5))
    assert found.p_value < 1e-6


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    baseline, candidate, labels = _pairs(np.random.default_rng(2), 30, 4, 0.1, 0.1)
    first = bootstrap_means(baseline, candidate, labels, relative, **SETTINGS)
    assert first == bootstrap_means(baseline, candidate, labels, relative, **SETTINGS)
    assert first != bootstrap_means(baseline, candidate, labels, relative, **(SETTINGS | {"seed": 6}))


def test_the_mean_of_independent_items_agrees_with_students_interval() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(1.0, 1.0, 60)
    found = bootstrap_means(
        np.zeros(60), values, np.arange(60), difference, margin=0.1, confidence=0.95, resamples=20_000, seed=1
    )
    half = t.ppf(0.975, 59) * values.std(ddof=1) / math.sqrt(60)
    assert found.interval == pytest.approx((values.mean() - half, values.mean() + half), abs=0.04 * half)


def test_replicates_are_those_of_a_plain_loop() -> None:
    """The vectorised weighted percentile equals the percentile of the items written out as often as drawn."""
    baseline, candidate, labels = _pairs(np.random.default_rng(4), 7, 3, 0.2, 0.2)
    found = bootstrap_percentiles(
        baseline, candidate, labels, relative, quantile=0.5, margin=0.1, confidence=0.5, resamples=999, seed=9
    )
    draws = np.random.default_rng(9).multinomial(7, np.full(7, 1 / 7), size=999)
    ratios = []
    for draw in draws:
        rows = np.concatenate([np.tile(np.flatnonzero(labels == cluster), count) for cluster, count in enumerate(draw)])
        medians = [np.quantile(values[rows], 0.5, method="inverted_cdf") for values in (baseline, candidate)]
        ratios.append(medians[1] / medians[0] - 1)
    assert found.standard_error == pytest.approx(np.std(ratios, ddof=1), rel=1e-9)


@pytest.mark.parametrize(
    ("shared", "size", "quantile"), [(0.0, 4, 0.5), (0.15, 4, 0.5), (0.15, 4, None), (0.1, 16, 0.95)]
)
def test_intervals_hold_the_truth_as_often_as_they_say(shared: float, size: int, quantile: float | None) -> None:
    """24 clusters, as small runs have. Medians of pairs hold it more often than they say: the safe side."""
    rng = np.random.default_rng(11)
    rounds = 200
    covered = 0
    for _ in range(rounds):
        baseline, candidate, labels = _pairs(rng, 24, size, shared, 0.15)
        if quantile is None:
            found = bootstrap_means(baseline, candidate, labels, relative, **SETTINGS)
        else:
            found = bootstrap_percentiles(baseline, candidate, labels, relative, quantile=quantile, **SETTINGS)
        covered += found.interval.lower <= 0 <= found.interval.upper
    assert covered / rounds >= 0.92


def test_ignoring_clusters_would_be_far_too_sure() -> None:
    """The reason for the clusters: with shared noise, an interval by item misses the truth several times too often."""
    rng = np.random.default_rng(12)
    settings = SETTINGS | {"resamples": 300}
    missed = {"item": 0, "cluster": 0}
    for _ in range(100):
        baseline, candidate, labels = _pairs(rng, 24, 16, 0.2, 0.05)
        for name, clusters in (("item", np.arange(len(labels))), ("cluster", labels)):
            lower, upper = bootstrap_means(baseline, candidate, clusters, relative, **settings).interval
            missed[name] += not lower <= 0 <= upper
    assert missed["item"] > 30
    assert missed["cluster"] < 12


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.1, 0.15, 0.25])
def test_the_p_value_agrees_with_the_interval(shift: float) -> None:
    rng = np.random.default_rng(13)
    for _ in range(40):
        baseline, candidate, labels = _pairs(rng, 24, 4, 0.05, 0.1, shift)
        found = bootstrap_means(baseline, candidate, labels, relative, **SETTINGS)
        if abs(found.interval.lower - 0.1) > 0.004:
            assert (found.p_value < 0.05) == (found.interval.lower > 0.1)


def test_failed_requests_are_infinitely_slow() -> None:
    baseline = np.full(100, 10.0)
    candidate = np.where(np.arange(100) < 20, np.inf, 10.0)
    p95 = bootstrap_percentiles(baseline, candidate, np.arange(100), relative, quantile=0.95, **SETTINGS)
    assert p95.value == math.inf
    assert p95.interval.lower == math.inf
    median = bootstrap_percentiles(baseline, candidate, np.arange(100), relative, quantile=0.5, **SETTINGS)
    assert median.value == 0
    both = bootstrap_percentiles(candidate, candidate, np.arange(100), relative, quantile=0.95, **SETTINGS)
    assert both.value == 0


def test_one_cluster_says_nothing() -> None:
    found = bootstrap_means(np.ones(9), np.full(9, 2.0), np.zeros(9, dtype=np.int64), relative, **SETTINGS)
    assert found.interval == (-math.inf, math.inf)
    assert found.p_value == 1


def test_design_effect_of_identical_and_of_independent_neighbours() -> None:
    values = np.repeat(np.random.default_rng(14).normal(size=40), 5)
    assert design_effect(values, np.repeat(np.arange(40), 5)) == pytest.approx(5, rel=0.05)
    assert design_effect(values, np.arange(200)) == pytest.approx(1, abs=1e-9)
    assert design_effect(np.zeros(10), np.arange(10)) == 1


def test_clusters_are_numbered_by_appearance_and_sized_for_the_bootstrap() -> None:
    assert cluster_numbers(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert [run_length(n) for n in (1, 24, 96, 410, 10_000)] == [1, 1, 4, 18, 20]


@pytest.mark.parametrize(
    ("signed", "folded"), [((-0.02, 0.05), (0.0, 0.05)), ((0.01, 0.05), (0.01, 0.05)), ((-0.05, -0.01), (0.01, 0.05))]
)
def test_a_change_in_either_direction_is_folded_at_zero(
    signed: tuple[float, float], folded: tuple[float, float]
) -> None:
    middle = sum(signed) / 2
    longer = LossEstimate(middle, Interval(*signed), 0.1, 0.2)
    shorter = LossEstimate(-middle, Interval(-signed[1], -signed[0]), 0.1, 0.9)
    assert size_of_change(longer, shorter).interval == pytest.approx(folded)
    assert size_of_change(longer, shorter).value == pytest.approx(abs(middle))
