"""Loss of a paired yes-or-no outcome: share of items that only the baseline got right, less the reverse."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from quantgate.gate.families.rule_metric import Measurement, RuleQuestion
from quantgate.stats.clusters import design_effect
from quantgate.stats.interval import LossEstimate
from quantgate.stats.power import binary_standard_error, discordance
from quantgate.stats.tango import tango_interval, tango_p_value

MARGIN_UNITS = {"pp": "pp", "": "pp"}
METHOD = "Tango's score interval of paired proportions"


def measure_binary(
    baseline_right: NDArray[np.bool_],
    candidate_right: NDArray[np.bool_],
    clusters: NDArray[np.int64],
    question: RuleQuestion,
) -> Measurement:
    """Arrays [n], aligned item by item; where items depend on each other, the design effect divides the counts."""
    n = len(baseline_right)
    if n == 0:
        return Measurement(n=0, method=METHOD)
    only_baseline = int((baseline_right & ~candidate_right).sum())
    only_candidate = int((~baseline_right & candidate_right).sum())
    effect = design_effect(baseline_right.astype(np.float64) - candidate_right, clusters)
    b, c, size = only_baseline / effect, only_candidate / effect, n / effect
    spread = discordance(only_baseline, only_candidate, n)
    estimate = LossEstimate(
        value=(only_baseline - only_candidate) / n,
        interval=tango_interval(b, c, size, question.confidence),
        standard_error=math.sqrt(effect) * binary_standard_error(spread, n),
        p_value=tango_p_value(b, c, size, question.margin),
    )
    return Measurement(
        n=n,
        method=METHOD if effect == 1 else f"{METHOD}, design effect {effect:.2f}",
        baseline=float(baseline_right.mean()),
        candidate=float(candidate_right.mean()),
        estimate=estimate,
        counts={
            "both_right": int((baseline_right & candidate_right).sum()),
            "both_wrong": int((~baseline_right & ~candidate_right).sum()),
            "only_baseline_right": only_baseline,
            "only_candidate_right": only_candidate,
        },
    )
