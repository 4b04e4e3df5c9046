"""The needed n, held to what its own intervals decide: drawn at that n, and at half of it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from quantgate.stats.bootstrap import bootstrap_means, bootstrap_percentiles, difference
from quantgate.stats.count_chances import chance_to_decide_pairs, chance_to_decide_share, detectable_difference
from quantgate.stats.interval import Interval, LossEstimate
from quantgate.stats.mean_chances import chance_to_decide_mean, clusters_by_item, clusters_by_run
from quantgate.stats.sample_size import needed_n
from quantgate.stats.tango import tango_interval, tango_score, tango_scores
from quantgate.stats.wilson import wilson_interval

POWER = 0.8
DRAWS = 300


def decided(interval: Interval, margin: float, *, either_way: bool = False) -> bool:
    lower, upper = interval
    if either_way:
        return max(abs(lower), abs(upper)) < margin or max(lower, -upper) > margin
    return upper < margin or lower > margin


def share_decided(n: int, worse: float, better: float, margin: float, either_way: bool) -> float:
    rng = np.random.default_rng(n)
    draws = rng.multinomial(n, [worse, better, 1 - worse - better], size=DRAWS)
    return float(np.mean([decided(tango_interval(b, c, n), margin, either_way=either_way) for b, c, _ in draws]))


@pytest.mark.parametrize("seen", [4, 16, 70, 200])
def test_pairs_without_any_event_need_what_the_limit_needs(seen: int) -> None:
    """The upper limit of none in n is z^2 / (n + z^2); it does not depend on how many were seen so far."""
    chance = partial(chance_to_decide_pairs, only_baseline=0, only_candidate=0, margin=0.01, confidence=0.95)
    assert needed_n(chance, above=seen, power=POWER) == 381
    assert tango_interval(0, 0, 381).upper < 0.01 <= tango_interval(0, 0, 380).upper


@pytest.mark.parametrize("either_way", [False, True])
@pytest.mark.parametrize(
    ("worse", "better", "margin"),
    [
        (0.0, 0.0, 0.03), (1 / 16, 0.0, 0.01), (0.02, 0.02, 0.02), (0.03, 0.01, 0.06), (0.15, 0.05, 0.05),
        (0.0, 0.04, 0.03), (0.12, 0.10, 0.06),
    ],
)  # fmt: skip
def test_pairs_drawn_at_the_needed_n_decide(worse: float, better: float, margin: float, either_way: bool) -> None:
    chance = partial(
        chance_to_decide_pairs, only_baseline=worse, only_candidate=better, margin=margin, confidence=0.95,
        either_way=either_way,
    )  # fmt: skip
    wanted = needed_n(chance, above=10, power=POWER)
    assert wanted is not None
    found = share_decided(wanted, worse, better, margin, either_way)
    assert found == pytest.approx(chance(wanted), abs=0.08)
    assert found > POWER - 0.08
    assert share_decided(wanted // 2, worse, better, margin, either_way) < 0.75


def test_dependent_pairs_need_as_many_more_as_their_design_effect() -> None:
    chance = partial(chance_to_decide_pairs, only_baseline=0.02, only_candidate=0.02, margin=0.02, confidence=0.95)
    alone = needed_n(chance, above=10, power=POWER)
    together = needed_n(partial(chance, design_effect=2.0), above=10, power=POWER)
    assert alone is not None
    assert together == pytest.approx(2 * alone, rel=0.05)


@pytest.mark.parametrize(("share", "margin"), [(0.0, 0.05), (0.02, 0.05), (0.2, 0.1), (0.3, 0.32)])
def test_shares_drawn_at_the_needed_n_decide(share: float, margin: float) -> None:
    chance = partial(chance_to_decide_share, share=share, margin=margin, confidence=0.95)
    wanted = needed_n(chance, above=5, power=POWER)
    assert wanted is not None
    for n, enough in ((wanted, True), (wanted // 2, False)):
        counts = np.random.default_rng(n).binomial(n, share, size=2000)
        intervals = {int(k): wilson_interval(int(k), n) for k in np.unique(counts)}
        found = np.mean([decided(intervals[int(k)], margin) for k in counts])
        assert found > POWER - 0.03 if enough else found < 0.75


@pytest.mark.parametrize(("n", "only_candidate"), [(16, 0), (70, 0), (70, 3), (400, 8)])
def test_detectable_differences_are_found_as_often_as_the_power_says(n: int, only_candidate: int) -> None:
    noise = (only_candidate + 0.5) / (n + 2)
    smallest = detectable_difference(POWER, n=n, noise=noise, confidence=0.95)

    def found(difference: float) -> float:
        rates = [noise + difference, noise, 1 - 2 * noise - difference]
        draws = np.random.default_rng(n).multinomial(n, rates, size=1000)
        return float(np.mean([tango_interval(b, c, n).lower > 0 for b, c, _ in draws]))

    assert found(smallest) == pytest.approx(POWER, abs=0.05)
    assert found(0.75 * smallest) < POWER - 0.1


def test_a_sample_that_finds_nothing_has_no_detectable_difference() -> None:
    assert detectable_difference(POWER, n=3, noise=0.1, confidence=0.95) == np.inf


def ordered_normal(n: int, loss: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose differences have the mean `loss` and the standard deviation 1 exactly."""
    spread = norm.ppf((np.arange(n) + 0.5) / n)
    return np.zeros(n), loss + spread / spread.std(ddof=1)


@pytest.mark.parametrize("seen", [6, 60])
@pytest.mark.parametrize(("loss", "margin"), [(0.0, 0.25), (0.3, 0.05)])
def test_means_drawn_at_the_needed_n_decide(seen: int, loss: float, margin: float) -> None:
    settings = {"margin": margin, "confidence": 0.95, "resamples": 1000}
    estimate = bootstrap_means(*ordered_normal(seen, loss), np.arange(seen), difference, **settings, seed=1)
    chance = partial(
        chance_to_decide_mean, seen=estimate, seen_n=seen, clusters=seen, clusters_with=clusters_by_item,
        margin=margin, confidence=0.95,
    )  # fmt: skip
    wanted = needed_n(chance, above=seen, power=POWER)
    assert wanted is not None
    rng = np.random.default_rng(2)
    found = np.mean(
        [
            decided(
                bootstrap_means(
                    np.zeros(wanted), rng.normal(loss, 1, wanted), np.arange(wanted), difference, **settings, seed=trial
                ).interval,
                margin,
            )
            for trial in range(120)
        ]
    )
    assert found == pytest.approx(POWER, abs=0.12)


def test_medians_drawn_at_the_needed_n_decide() -> None:
    settings = {"quantile": 0.5, "margin": 0.3, "confidence": 0.95, "resamples": 1000}
    rng = np.random.default_rng(5)

    def interval(n: int, seed: int) -> LossEstimate:
        runs = np.arange(n) // max(1, -(-n // 24))
        return bootstrap_percentiles(rng.normal(size=n), rng.normal(size=n), runs, difference, **settings, seed=seed)

    typical = LossEstimate(0.0, Interval(-0.56, 0.56), 0.26, 0.5)
    chance = partial(
        chance_to_decide_mean, seen=typical, seen_n=48, clusters=24, clusters_with=clusters_by_run, margin=0.3,
        confidence=0.95,
    )  # fmt: skip
    wanted = needed_n(chance, above=48, power=POWER)
    assert wanted is not None
    assert 0.65 < np.mean([decided(interval(wanted, trial).interval, 0.3) for trial in range(100)]) < 0.95


def test_what_no_practicable_n_decides_has_no_needed_n() -> None:
    seen = LossEstimate(0.1, Interval(0.0, 0.2), 0.05, 0.5)
    unbounded = seen._replace(interval=Interval(0.0, np.inf))
    rest = {"seen_n": 40, "clusters": 40, "clusters_with": clusters_by_item, "confidence": 0.95}
    assert needed_n(partial(chance_to_decide_mean, seen=seen, margin=0.1, **rest), above=40, power=POWER) is None
    assert needed_n(partial(chance_to_decide_mean, seen=unbounded, margin=0.3, **rest), above=40, power=POWER) is None
    assert needed_n(partial(chance_to_decide_mean, seen=seen, margin=0.3, **rest), above=40, power=POWER) == 41


def test_scores_of_many_counts_are_those_of_each() -> None:
    b, c = np.array([0.0, 3.0, 0.0, 7.0]), np.array([0.0, 0.0, 5.0, 4.0])
    for difference_asked in (0.0, 0.05):
        one_by_one = [tango_score(*pair, 30, difference_asked) for pair in zip(b, c, strict=True)]
        assert tango_scores(b, c, 30, difference_asked) == pytest.approx(one_by_one)


def test_the_examples_of_the_page_are_true() -> None:
    """docs/statistics.md: pairs without a single flip."""
    found = [detectable_difference(POWER, n=n, noise=0.5 / (n + 2), confidence=0.95) for n in (70, 16)]
    assert [round(100 * difference) for difference in found] == [10, 42]
