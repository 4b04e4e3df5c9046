"""Goodness of fit: are the arrivals those of the process, and do the tests notice where they are not?

Each claim is tested on 20 seeds, so 20 p-values come of it. `fit` asks two things of them. The least of them is not
below 1 % / 20 (Bonferroni). And they are uniform themselves, by a Kolmogorov-Smirnov test at the 1 % level: a small
misfit that no single seed shows, and a fit too good to be random, fail it. A process that is right fails a claim with a
chance of 2 % at most over the choice of seeds. They are fixed, so what passes once passes always.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.traffic.records import counted
from tests.traffic.word_tokenizer import WordTokenizer

from quantgate.workload.portable_draws import PortableDraws
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.transforms import Arrivals, TransformContext
from quantgate.workload.transforms.arrival_processes import PROCESSES

Floats = NDArray[np.float64]

LEVEL = 0.01
SEEDS = range(20)
ENCODER = PromptEncoder(WordTokenizer(), 0)
RATE = 4.0


def starts(arrivals: Arrivals, units: int, seed: int) -> Floats:
    records = [counted(f"r{number}") for number in range(units)]
    moved = arrivals.apply(records, TransformContext(ENCODER, seed)).records
    return np.array([record.scheduled_ns for record in moved]) / 1e9


def gaps(times: Floats) -> Floats:
    return np.diff(times, prepend=0.0)


def fit(p_values: Sequence[float]) -> bool:
    return min(p_values) >= LEVEL / len(p_values) and stats.kstest(p_values, "uniform").pvalue >= LEVEL


def two_sided(distribution: Any, value: float) -> float:
    return float(2 * min(distribution.cdf(value), distribution.sf(value)))


def dispersion_p(counts: NDArray[Any]) -> float:
    """Fisher's index of dispersion: the counts' squared deviations over their mean are chi-squared under Poisson."""
    statistic = ((counts - counts.mean()) ** 2).sum() / counts.mean()
    return two_sided(stats.chi2(len(counts) - 1), statistic)


def window_counts(times: Floats, seconds: float, windows: int) -> NDArray[Any]:
    return np.histogram(times, bins=windows, range=(0, seconds * windows))[0]


def conditioned(times: Floats) -> Floats:
    """The schedule as some load generators bend it: the last arrival lands where the mean rate says."""
    return times * (len(times) / RATE / times[-1])


def poisson(seed: int, units: int = 1000) -> Floats:
    return starts(Arrivals(process="poisson", rate=RATE), units, seed)


def gamma(seed: int, cv: float) -> Floats:
    return starts(Arrivals(process="gamma", rate=RATE, cv=cv), 1000, seed)


def exponential_p(values: Floats) -> float:
    return float(stats.kstest(values, stats.expon(scale=1 / RATE).cdf).pvalue)


def test_poisson_gaps_are_exponential() -> None:
    assert fit([exponential_p(gaps(poisson(seed))) for seed in SEEDS])


def test_gaps_that_are_hardly_burstier_are_told_from_exponential_ones() -> None:
    assert not fit([exponential_p(gaps(gamma(seed, cv=1.2))) for seed in SEEDS])
    assert not fit([exponential_p(gaps(starts(Arrivals(process="constant", rate=RATE), 1000, s))) for s in SEEDS])


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.0])
def test_gamma_gaps_have_the_gamma_distribution(cv: float) -> None:
    shape = 1 / cv**2
    law = stats.gamma(shape, scale=1 / (shape * RATE))
    assert law.std() / law.mean() == pytest.approx(cv)
    assert fit([float(stats.kstest(gaps(gamma(seed, cv)), law.cdf).pvalue) for seed in SEEDS])


@pytest.mark.parametrize("draw", [poisson, lambda seed: gamma(seed, 2.0)], ids=["poisson", "gamma"])
def test_gaps_do_not_depend_on_the_gap_before(draw: Callable[[int], Floats]) -> None:
    drawn = [gaps(draw(seed)) for seed in SEEDS]
    assert fit([float(stats.spearmanr(found[:-1], found[1:]).pvalue) for found in drawn])


def test_constant_gaps_are_equal() -> None:
    times = starts(Arrivals(process="constant", rate=RATE), 1000, 0)
    assert times == pytest.approx(np.arange(1, 1001) / RATE, abs=1e-9)


def test_counts_in_windows_vary_as_poissons() -> None:
    # 900 of the 1,000 s that 4,000 arrivals take on average, whose standard deviation is 16 s: no window stays empty.
    assert fit([dispersion_p(window_counts(poisson(seed, 4000), 10, 90)) for seed in SEEDS])
    assert not fit([dispersion_p(window_counts(gamma(seed, 2.0), 10, 20)) for seed in SEEDS])


def test_the_count_of_a_window_varies_over_seeds_as_poissons_and_is_not_bent_to_its_mean() -> None:
    drawn = [poisson(seed, 600) for seed in range(200)]
    counts = np.array([(times < 100).sum() for times in drawn])
    assert stats.poisson(400).interval(0.999)[0] < counts.mean() < stats.poisson(400).interval(0.999)[1]
    assert dispersion_p(counts) >= LEVEL
    bent = np.array([(conditioned(times) < 100).sum() for times in drawn])
    assert dispersion_p(bent) < LEVEL / 1000
    assert bent.var() / bent.mean() == pytest.approx(1 / 3, abs=0.15)


def ramp_cumulative(times: Floats, rate: float, to_rate: float, units: int) -> Floats:
    """Expected arrivals up to each time, by integrating the rate piece by piece."""
    length = 2 * units / (rate + to_rate)
    inside = np.minimum(times, length)
    return rate * inside + (to_rate - rate) * inside**2 / (2 * length) + to_rate * np.maximum(times - length, 0)


@pytest.mark.parametrize(("rate", "to_rate"), [(1.0, 7.0), (6.0, 0.5), (4.0, 4.0)])
def test_a_ramp_in_its_own_time_is_a_poisson_process_of_rate_one(rate: float, to_rate: float) -> None:
    """The time-rescaling theorem: the cumulative rate at the arrivals of an inhomogeneous Poisson process."""
    ramp = Arrivals(process="ramp", rate=rate, to_rate=to_rate)
    rescaled = [ramp_cumulative(starts(ramp, 1000, seed), rate, to_rate, 1000) for seed in SEEDS]
    assert fit([float(stats.kstest(gaps(times), stats.expon.cdf).pvalue) for times in rescaled])
    assert fit([dispersion_p(window_counts(times, 20, 40)) for times in rescaled])


def test_a_steady_process_is_told_from_a_ramp_of_the_same_mean_rate() -> None:
    rescaled = [ramp_cumulative(poisson(seed), 1.0, 7.0, 1000) for seed in SEEDS]
    assert not fit([float(stats.kstest(gaps(times), stats.expon.cdf).pvalue) for times in rescaled])


def test_a_ramp_has_its_rates_at_its_ends() -> None:
    ramp = Arrivals(process="ramp", rate=1, to_rate=7)
    drawn = [starts(ramp, 1000, seed) for seed in SEEDS]
    first = sum(int((times < 25).sum()) for times in drawn)
    last = sum(int(((times >= 200) & (times < 225)).sum()) for times in drawn)
    # The line runs over 250 s, by 0.024 a second: 1.3 per second in the middle of the first 25, 6.1 at 212.5 s.
    for found, rate in ((first, 1.3), (last, 6.1)):
        assert two_sided(stats.poisson(rate * 25 * len(SEEDS)), found) >= LEVEL


class EvenDraws(PortableDraws):
    """Gaps of 2 where they would be drawn with a mean of 1."""

    def exponential(self) -> float:
        return 2.0


def test_a_ramp_by_hand_and_what_comes_after_its_end() -> None:
    """From 1 to 3 a second for 4 arrivals: over 2 s, by r(t) = 1 + t and L(t) = t + t^2 / 2, then at 3 a second."""
    times = PROCESSES["ramp"].starts(4, EvenDraws("none"), rate=1.0, to_rate=3.0)
    assert times == pytest.approx([5**0.5 - 1, 2.0, 2.0 + 2 / 3, 2.0 + 4 / 3])


@pytest.mark.parametrize("shape", [0.01, 1 / 9, 0.5, 1.0, 4.0, 1000.0])
def test_gamma_draws_have_their_distribution(shape: float) -> None:
    def p_value(seed: int) -> float:
        draws = PortableDraws(f"shape {shape}, seed {seed}")
        return float(stats.kstest([draws.gamma(shape) for _ in range(400)], stats.gamma(shape).cdf).pvalue)

    assert fit([p_value(seed) for seed in SEEDS])


def test_normal_draws_have_their_distribution() -> None:
    def p_value(seed: int) -> float:
        draws = PortableDraws(f"normal, seed {seed}")
        return float(stats.kstest([draws.normal() for _ in range(2000)], stats.norm.cdf).pvalue)

    assert fit([p_value(seed) for seed in SEEDS])


def test_exponential_draws_have_their_distribution() -> None:
    def p_value(seed: int) -> float:
        draws = PortableDraws(f"exponential {seed}")
        return float(stats.kstest([draws.exponential() for _ in range(2000)], stats.expon.cdf).pvalue)

    assert fit([p_value(seed) for seed in SEEDS])


def test_draws_are_the_same_on_every_machine() -> None:
    """Pinned to the last bit: what is drawn here is drawn everywhere, and no run of a plan is another one's plan."""
    draws = PortableDraws("arrivals:7")
    drawn = [draws.exponential(), draws.normal(), draws.gamma(4.0), draws.gamma(0.1)]
    assert [value.hex() for value in drawn] == [
        "0x1.4c9d191f35a80p-3",
        "0x1.660e963164c07p-6",
        "0x1.e2e337fd6d780p+1",
        "0x1.ed6aedc8c2921p-35",
    ]
    ramp = starts(Arrivals(process="ramp", rate=1, to_rate=5), 3, 7)
    assert [round(start * 1e9) for start in ramp] == [129083774, 382752190, 412057053]
