"""Loss of a paired yes-or-no outcome: share of items that only the baseline got right, less the reverse."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quantgate.gate.families.rule_metric import Measurement, RuleQuestion
from quantgate.stats.clusters import design_effect
from quantgate.stats.count_chances import chance_to_decide_pairs, detectable_difference
from quantgate.stats.interval import LossEstimate, size_of_change
from quantgate.stats.power import binary_standard_error, discordance
from quantgate.stats.tango import tango_interval, tango_p_value

MARGIN_UNITS = {"pp": "pp", "": "pp"}
METHOD = "Tango's score interval of paired proportions"


def measure_binary(
    baseline_right: NDArray[np.bool_],
    candidate_right: NDArray[np.bool_],
    clusters: NDArray[np.int64],
    question: RuleQuestion,
    *,
    either_way: bool = False,
) -> Measurement:
    """Arrays [n], aligned item by item; where items depend on each other, the design effect divides the counts.

    either_way: a change in either direction is a loss.
    """
    n = len(baseline_right)
    if n == 0:
        return Measurement(n=0, method=METHOD)
    only_baseline = int((baseline_right & ~candidate_right).sum())
    only_candidate = int((~baseline_right & candidate_right).sum())
    effect = design_effect(baseline_right.astype(np.float64) - candidate_right, clusters)
    standard_error = math.sqrt(effect) * binary_standard_error(discordance(only_baseline, only_candidate, n), n)

    def loss(worse: int, better: int) -> LossEstimate:
        b, c, size = worse / effect, better / effect, n / effect
        interval = tango_interval(b, c, size, question.confidence)
        return LossEstimate((worse - better) / n, interval, standard_error, tango_p_value(b, c, size, question.margin))

    estimate = loss(only_baseline, only_candidate)
    if either_way:
        estimate = size_of_change(estimate, loss(only_candidate, only_baseline))
    return Measurement(
        n=n,
        method=METHOD
        + (", both directions" if either_way else "")
        + ("" if effect == 1 else f", design effect {effect:.2f}"),
        baseline=float(baseline_right.mean()),
        candidate=float(candidate_right.mean()),
        estimate=estimate,
        chance=partial(
            chance_to_decide_pairs,
            only_baseline=only_baseline / n, only_candidate=only_candidate / n, margin=question.margin,
            confidence=question.confidence, design_effect=effect, either_way=either_way,
        ),
        detectable=partial(
            detectable_difference,
            n=n, noise=(only_candidate + 0.5) / (n + 2), confidence=question.confidence, design_effect=effect,
        ),
        counts={
            "both_right": int((baseline_right & candidate_right).sum()),
            "both_wrong": int((~baseline_right & ~candidate_right).sum()),
            "only_baseline_right": only_baseline,
            "only_candidate_right": only_candidate,
        },
    )  # fmt: skip
