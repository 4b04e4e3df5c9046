"""The power calculation of docs/statistics.md: can the ready policies say yes and no on their suites?"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from scipy.stats import binom, multinomial, norm

from quantgate.gate.judge import judge
from quantgate.gate.policy import load_policy
from quantgate.resources import bundled_root
from quantgate.stats.tango import tango_interval
from quantgate.store.run_folder import LoadedRun

POLICIES = bundled_root() / "suites" / "policies"
BLOCKS = 4


def chance_of_latency(margin: float, n: int, by_request: float, by_cell: float) -> float:
    """P(the median's ratio passes) for two equal arms.

    The interval sees the noise by request, 1.2533 sd / sqrt(n) for a median (both arms' noise in sd); noise by cell
    moves the estimate, sqrt(2) sd / sqrt(blocks), and stays outside the interval. 2.07 = t(0.975; 23 degrees).
    """
    seen = 1.2533 * by_request / math.sqrt(n)
    total = math.hypot(seen, math.sqrt(2) * by_cell / math.sqrt(BLOCKS))
    return float(norm.cdf((math.log1p(margin) - 2.07 * seen) / total))


def chance_of_answers(margin: float, n: int, discordant: float) -> float:
    """P(Tango's upper limit < margin) for two equal arms, summed over every pair of counts."""
    total = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            p = float(multinomial.pmf([b, c, n - b - c], n, [discordant / 2, discordant / 2, 1 - discordant]))
            if p < 1e-9:
                if c > 0 and c > discordant * n:
                    break
                continue
            total += p * (tango_interval(b, c, n).upper < margin)
        if b > discordant * n and binom.sf(b, n, discordant / 2) < 1e-9:
            break
    return total


@pytest.mark.parametrize(
    ("margin", "n", "by_request", "by_cell", "chance"),
    [
        (1.00, 96, 0.5, 0.10, 1.000),
        (0.50, 96, 0.2, 0.10, 1.000),
        (1.00, 96, 0.5, 0.25, 0.999),
        (0.50, 96, 0.2, 0.25, 0.976),
        (0.30, 307, 0.5, 0.05, 1.000),
        (0.20, 410, 0.2, 0.05, 1.000),
        (0.30, 307, 0.5, 0.10, 0.991),
        (0.20, 410, 0.2, 0.10, 0.986),
    ],
)
def test_chances_of_latency_rules_as_documented(
    margin: float, n: int, by_request: float, by_cell: float, chance: float
) -> None:
    assert chance_of_latency(margin, n, by_request, by_cell) == pytest.approx(chance, abs=0.001)


@pytest.mark.parametrize(
    ("margin", "n", "discordant", "chance"),
    [(0.10, 100, 0.02, 0.997), (0.10, 100, 0.05, 0.953), (0.06, 200, 0.03, 0.980), (0.06, 200, 0.12, 0.648)],
)
def test_chances_of_answer_rules_as_documented(margin: float, n: int, discordant: float, chance: float) -> None:
    assert chance_of_answers(margin, n, discordant) == pytest.approx(chance, abs=0.001)


@pytest.mark.parametrize(("margin", "n", "chance"), [(0.15, 410, 0.99), (0.10, 750, 0.97), (0.10, 600, 0.92)])
def test_chances_of_length_rules_as_documented(margin: float, n: int, chance: float) -> None:
    seen = 0.5 * math.sqrt(1 + 0.8**2) / math.sqrt(n)
    assert 2 * norm.cdf((margin - 2.07 * seen) / seen) - 1 == pytest.approx(chance, abs=0.005)


@pytest.mark.parametrize("name", ["chat", "mixed", "batch"])
def test_no_policy_asks_for_less_time_than_answers_may_become_shorter(name: str) -> None:
    policy = load_policy(POLICIES / f"{name}.yaml")
    [length] = [rule for rule in policy.rules if rule.metric == "output_length_change"]
    assert length.required
    assert policy.gain is not None
    whole = [gain.required_share for gain in policy.gain.rules if gain.metric == "e2e_ms"]
    assert all(length.loss_margin.value <= share for share in whole)


def test_the_self_check_needs_what_it_documents() -> None:
    """18 of 20 with a chance of at least 0.95 needs a chance of about 0.96 a run."""
    assert binom.sf(17, 20, 0.96) > 0.95
    run = chance_of_latency(1.00, 96, 0.5, 0.10) * chance_of_latency(0.50, 96, 0.2, 0.10)
    assert run * chance_of_answers(0.10, 100, 0.02) > 0.99


def test_on_simulated_runs_the_self_check_says_yes_and_no(run_of: Callable[..., LoadedRun], arm: Any) -> None:
    """20 seeds with the noise that the calculation assumes: by request 0.2, by cell 0.10, KL of A/A 2e-3."""
    policy = load_policy(POLICIES / "self-check.yaml").model_copy(update={"resamples": 1000})
    noise = {"noise": 0.2, "cell_noise": 0.10, "kl": 2e-3}
    verdicts = []
    for seed in range(20):
        run = run_of(
            arm("fp16", "baseline", **noise), arm("fp16-aa", "aa", **noise), arm("same", **noise),
            arm("damaged", **(noise | {"kl": 0.06, "wrong": 0.02, "logprob_drop": 0.02})), seed=seed,
        )  # fmt: skip
        verdicts.append(judge(run, policy, today=date(2026, 1, 1), seed=seed).arms)
    assert sum(arms["same"].verdict == "ship" for arms in verdicts) >= 19
    assert sum(arms["same"].verdict == "do_not_ship" for arms in verdicts) == 0
    assert sum(arms["damaged"].verdict == "do_not_ship" for arms in verdicts) >= 19
