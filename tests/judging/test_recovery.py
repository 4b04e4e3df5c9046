"""A judge of known bias and preference is told apart from its answers alone, over many seeds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.judging.answered_run import (
    AA,
    CANDIDATE,
    ScriptedJudge,
    answered_run,
    order_of,
    preferring_baseline,
)

from quantgate.judging.budget import Budget, Spending
from quantgate.judging.judge_client import JudgeClient
from quantgate.judging.judge_run import prepare
from quantgate.judging.judging_session import JudgingSession
from quantgate.judging.pair_verdicts import judged_pairs, pairs_of_arm
from quantgate.judging.rows import table_of
from quantgate.judging.summary import JudgingSummary, summarize
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.store.run_folder import LoadedRun

SEEDS = 40
REQUESTS = 60
MOST_MISSES = 5
"""Of 40 intervals that cover in 95 of 100 cases, more than 5 miss with a chance of 0.014."""


def judged(seed: int, position_bias: float, preference: float = 0.7) -> LoadedRun:
    """The whole way from a run to its judgements, but for the disk."""
    run = answered_run(REQUESTS, preferring_baseline(preference, REQUESTS, seed))
    session = JudgingSession(
        JudgeClient(ScriptedJudge(position_bias, seed), "judge-1", 64, {}), Budget(10**6, 10**9, Spending()),
        concurrency=4, write=lambda rows: None, on_pair=lambda done: None,
    )  # fmt: skip
    outcome = run_in_virtual_time(lambda clock: session.run(prepare(run, order_of()).plan))
    return replace(run, judgements=table_of(outcome.rows))


def found_in(run: LoadedRun) -> JudgingSummary:
    summary = summarize(run, 0.95)
    assert summary is not None
    return summary


@pytest.mark.parametrize("position_bias", [0.0, 0.3])
def test_bias_and_preference_lie_in_their_intervals(position_bias: float) -> None:
    """With chance b the judge takes the first answer, so that a pair is inconsistent with chance b exactly.

    Hence the first answer wins (1 + b) / 2 of the choices, the baseline 70 % of the pairs that are no tie, and the
    net preference is 0.4 (1 - b); on A/A all of it is 0.
    """
    expected = {
        "position": (1 + position_bias) / 2,
        "wins": 0.7,
        "net": 0.4 * (1 - position_bias),
        "A/A": 0.0,
    }
    misses = dict.fromkeys(expected, 0)
    for seed in range(SEEDS):
        summary = found_in(judged(seed, position_bias))
        arms = {arm.arm_id: arm for arm in summary.arms}
        found = {
            "position": summary.position,
            "wins": arms[CANDIDATE].baseline_wins,
            "net": arms[CANDIDATE].net,
            "A/A": arms[AA].net,
        }
        for name, estimate in found.items():
            assert estimate is not None
            lower, upper = estimate.interval
            misses[name] += not lower <= expected[name] <= upper
    assert max(misses.values()) <= MOST_MISSES, misses


def test_a_judge_that_only_looks_at_the_place_prefers_nobody() -> None:
    summary = found_in(judged(seed=3, position_bias=1.0, preference=1.0))
    assert summary.position is not None
    assert summary.position.share == 1.0
    assert all((arm.prefer_baseline, arm.prefer_arm, arm.ties) == (0, 0, REQUESTS) for arm in summary.arms)


def test_without_bias_every_verdict_is_the_hidden_truth() -> None:
    quality = preferring_baseline(0.7, REQUESTS, seed=5)
    pairs = pairs_of_arm(judged_pairs(judged(seed=5, position_bias=0.0).judgements), CANDIDATE)
    assert len(pairs) == REQUESTS
    for index, pair in enumerate(pairs):
        assert pair.preferred == ("baseline" if quality(CANDIDATE, index) < 500 else "other")
        assert not pair.orders_disagree
