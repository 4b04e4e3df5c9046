"""What a sample can find: minimum detectable effect, and the chance to pass.

All formulas are the normal approximation, z(p) being the standard normal quantile:
J. M. Lachin, Controlled Clinical Trials 2 (1981) 93-113.
"""

from __future__ import annotations

import math

from scipy.stats import norm


def discordance(only_baseline: float, only_candidate: float, n: float) -> float:
    """Share of pairs that differ, half a pair added to each of the four cells so that none seen is not none at all.

    Source: A. Agresti and Y. Min, Statistics in Medicine 24 (2005) 729-740.
    """
    return (only_baseline + only_candidate + 1) / (n + 2)


def binary_standard_error(discordant_share: float, n: float) -> float:
    """Standard error of the difference of paired proportions near no difference: sqrt(share / n)."""
    return math.sqrt(discordant_share / n)


def minimum_detectable_effect(standard_error: float, confidence: float, power: float) -> float:
    """(z(1 - a/2) + z(power)) x standard error, in the loss's unit; a = 1 - confidence."""
    return _reach(confidence, power) * standard_error


def chance_to_pass(true_loss: float, standard_error: float, margin: float, confidence: float) -> float:
    """P(upper limit < margin) = Phi((margin - true loss) / standard error - z(1 - a/2))."""
    if standard_error == 0:
        return float(true_loss < margin)
    return float(norm.cdf((margin - true_loss) / standard_error - norm.ppf((1 + confidence) / 2)))


def _reach(confidence: float, power: float) -> float:
    return float(norm.ppf((1 + confidence) / 2) + norm.ppf(power))
