"""Rules about the next-token distribution over the baseline's own tokens: alarms for builds that are plainly broken."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quantgate.gate.evidence import Pairing
from quantgate.gate.families.rule_metric import Measurement, RuleMetric, RuleQuestion
from quantgate.stats.bootstrap import bootstrap_means, difference
from quantgate.stats.clusters import cluster_count, design_effect
from quantgate.stats.count_chances import chance_to_decide_share
from quantgate.stats.interval import LossEstimate
from quantgate.stats.mean_chances import chance_to_decide_mean, clusters_by_item
from quantgate.stats.power import binary_standard_error, discordance
from quantgate.stats.wilson import wilson_interval, wilson_p_value

Array = NDArray[np.float64]
WhyNot = Callable[[Pairing], str | None]


def _unmeasured(pairing: Pairing) -> str | None:
    return pairing.why_unmeasured("distribution")


def _no_whole_distributions(pairing: Pairing) -> str | None:
    """A divergence over the listed tokens alone is never taken for KL."""
    status = pairing.tier_statuses.get("distribution")
    return status.in_words if status is not None and status.status != "exact" else None


def _no_listed_tokens(pairing: Pairing) -> str | None:
    status = pairing.tier_statuses.get("distribution")
    if status is not None and status.status == "exact":
        return "whole distributions were compared; kl_mean is their divergence"
    return _unmeasured(pairing)


def _mean_loss(
    metric: str, to_loss: Callable[[Array], Array], why_not: WhyNot, pairing: Pairing, question: RuleQuestion
) -> Measurement:
    values, clusters = pairing.distribution(metric)
    method = "bootstrap of the mean over sequences"
    if len(values) < 2:
        unmeasured = why_not(pairing) if len(values) == 0 else None
        return Measurement(n=len(values), method=method, minimum_n=None if unmeasured else 2, unmeasured=unmeasured)
    losses = to_loss(values)
    estimate = bootstrap_means(
        np.zeros_like(losses), losses, clusters, difference,
        margin=question.margin, confidence=question.confidence, resamples=question.resamples, seed=question.seed,
    )  # fmt: skip
    chance = partial(
        chance_to_decide_mean, seen=estimate, seen_n=len(losses), clusters=cluster_count(clusters),
        clusters_with=clusters_by_item, margin=question.margin, confidence=question.confidence,
    )  # fmt: skip
    return Measurement(n=len(losses), method=method, candidate=float(losses.mean()), estimate=estimate, chance=chance)


def _first_token(pairing: Pairing, question: RuleQuestion) -> Measurement:
    """A share of sequences, so that Wilson's interval serves; near-certain agreement would collapse a bootstrap."""
    agreements, clusters = pairing.distribution("first_token_agreement")
    n = len(agreements)
    method = "Wilson's score interval"
    if n == 0:
        return Measurement(n=0, method=method, unmeasured=_unmeasured(pairing))
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
    chance = partial(
        chance_to_decide_share, share=estimate.value, margin=question.margin, confidence=question.confidence,
        design_effect=effect,
    )  # fmt: skip
    return Measurement(n=n, method=method, candidate=estimate.value, estimate=estimate, chance=chance)


def _rule(
    name: str,
    title: str,
    metric: str,
    units: dict[str, str],
    value_unit: str,
    *,
    to_loss: Callable[[Array], Array] = np.positive,
    why_not: WhyNot = _unmeasured,
) -> RuleMetric:
    def measure(pairing: Pairing, question: RuleQuestion) -> Measurement:
        return _mean_loss(metric, to_loss, why_not, pairing, question)

    return RuleMetric(name, title, ("mean",), units, value_unit, "sequences", measure)


_NATS = {"nats": "nats", "": "nats"}
_SHARE = {"pp": "pp", "": "pp"}

DISTRIBUTION_RULES = (
    _rule("kl_mean", "KL divergence of whole distributions", "kl", _NATS, "nats", why_not=_no_whole_distributions),
    _rule(
        "kl_topk", "listed-token KL divergence (a lower bound)", "kl_topk", _NATS,
        "nats", why_not=_no_listed_tokens,
    ),
    _rule("nll_increase", "rise of the negative log-likelihood", "nll_delta", _NATS, "nats"),
    _rule(
        "top1_disagreement", "top-1 disagreement", "top1_agreement", _SHARE, "share", to_loss=lambda share: 1 - share
    ),
    RuleMetric(
        "first_token_disagreement", "first-token disagreement", ("rate",), _SHARE, "share", "sequences", _first_token
    ),
)  # fmt: skip
