"""Rules about the next-token distribution over the baseline's own tokens: alarms for builds that are plainly broken."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quantgate.gate.evidence import Pairing
from quantgate.gate.families.rule_metric import Measurement, RuleMetric, RuleQuestion
from quantgate.stats.bootstrap import bootstrap_means, difference
from quantgate.stats.clusters import design_effect
from quantgate.stats.interval import LossEstimate
from quantgate.stats.power import binary_standard_error, discordance
from quantgate.stats.wilson import wilson_interval, wilson_p_value

Array = NDArray[np.float64]


def _mean_loss(metric: str, to_loss: Callable[[Array], Array], pairing: Pairing, question: RuleQuestion) -> Measurement:
    values, clusters = pairing.distribution(metric)
    method = "bootstrap of the mean over sequences"
    if len(values) < 2:
        return Measurement(n=len(values), method=method, minimum_n=2)
    losses = to_loss(values)
    estimate = bootstrap_means(
        np.zeros_like(losses), losses, clusters, difference,
        margin=question.margin, confidence=question.confidence, resamples=question.resamples, seed=question.seed,
    )  # fmt: skip
    return Measurement(n=len(losses), method=method, candidate=float(losses.mean()), estimate=estimate)


def _first_token(pairing: Pairing, question: RuleQuestion) -> Measurement:
    """A share of sequences, so that Wilson's interval serves; near-certain agreement would collapse a bootstrap."""
    agreements, clusters = pairing.distribution("first_token_agreement")
    n = len(agreements)
    method = "Wilson's score interval"
    if n == 0:
        return Measurement(n=0, method=method)
    differing = (agreements < 0.5).astype(np.float64)
    effect = design_effect(differing, clusters)
    count, size = float(differing.sum()) / effect, n / effect
    standard_error = binary_standard_error(discordance(float(differing.sum()), 0, n), size)
    estimate = LossEstimate(
        value=float(differing.mean()),
        interval=wilson_interval(count, size, question.confidence),
        standard_error=standard_error,
        p_value=wilson_p_value(count, size, question.margin),
    )
    return Measurement(n=n, method=method, candidate=float(differing.mean()), estimate=estimate)


def _rule(
    name: str, title: str, metric: str, to_loss: Callable[[Array], Array], units: dict[str, str], value_unit: str
) -> RuleMetric:
    def measure(pairing: Pairing, question: RuleQuestion) -> Measurement:
        return _mean_loss(metric, to_loss, pairing, question)

    return RuleMetric(name, title, ("mean",), units, value_unit, "sequences", measure)


_NATS = {"nats": "nats", "": "nats"}
_SHARE = {"pp": "pp", "": "pp"}

DISTRIBUTION_RULES = (
    _rule("kl_mean", "KL divergence from the baseline", "kl", np.positive, _NATS, "nats"),
    _rule("nll_increase", "rise of the negative log-likelihood", "nll_delta", np.positive, _NATS, "nats"),
    _rule("top1_disagreement", "top-1 disagreement", "top1_agreement", lambda share: 1 - share, _SHARE, "share"),
    RuleMetric(
        "first_token_disagreement", "first-token disagreement", ("rate",), _SHARE, "share", "sequences", _first_token
    ),
)
