"""Rules about task accuracy: does the candidate still get right what the baseline gets right?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from quantgate.gate.evidence import Pairing, QualityPairs
from quantgate.gate.families.lost_items import lost_items
from quantgate.gate.families.paired_binary import MARGIN_UNITS, METHOD, measure_binary
from quantgate.gate.families.rule_metric import Measurement, RuleMetric, RuleQuestion
from quantgate.stats.bootstrap import bootstrap_means, difference
from quantgate.stats.clusters import cluster_count
from quantgate.stats.interval import without_upper_limit
from quantgate.stats.mcnemar import mcnemar_exact
from quantgate.stats.mean_chances import chance_to_decide_mean, clusters_by_item
from quantgate.stats.wilson import wilson_interval
from quantgate.store.tier_status import QualityTier
from quantgate_engine.counted import counted

_MEAN_METHOD = "paired bootstrap of the mean over items"


def _measure(metric: str, tier: QualityTier, pairing: Pairing, question: RuleQuestion) -> Measurement:
    """An item that only the candidate failed (a timeout, an error) is one that it got wrong."""
    pairs = pairing.quality("task", metric, question.task, lost_as=0.0)
    if len(pairs.baseline) == 0:
        return Measurement(n=0, method=METHOD, unmeasured=pairing.why_unmeasured(tier))
    measured = measure_binary(pairs.baseline >= 0.5, pairs.candidate >= 0.5, pairs.clusters, question)
    counts = measured.counts
    p_value = mcnemar_exact(counts["only_baseline_right"], counts["only_candidate_right"])
    return replace(
        measured,
        method=f"{measured.method}; exact McNemar p {p_value:.3g}",
        uninformative=_at_floor(pairs, question),
        detail=lost_items(pairing, pairs, "count as wrong"),
    )


def _at_floor(pairs: QualityPairs, question: RuleQuestion) -> str | None:
    """Why the baseline's accuracy cannot show a loss; None where it can."""
    right = float((pairs.baseline >= 0.5).sum())
    n = len(pairs.baseline)
    chance = float(np.nan_to_num(pairs.floors, nan=0.0).mean())
    share = right / n
    if wilson_interval(right, n, question.confidence).lower <= chance:
        return (
            f"the baseline itself gets {share:.1%} right, which is not above chance ({chance:.1%}) with "
            f"{counted(n, 'item')}"
        )
    if share - chance <= question.margin:
        return f"the baseline gets {share:.1%} right, {chance:.1%} by chance: all it could lose lies within the margin"
    return None


def _rule(metric: str, title: str, tier: QualityTier) -> RuleMetric:
    def measure(pairing: Pairing, question: RuleQuestion) -> Measurement:
        return _measure(metric, tier, pairing, question)

    return RuleMetric(metric, title, ("rate",), MARGIN_UNITS, "share", "items", measure)


def _gold_logprob(pairing: Pairing, question: RuleQuestion) -> Measurement:
    """Mean fall of the right answer's log-probability per token: finds a loss long before answers flip.

    Of the items that both arms measured; where the candidate failed more of them, nothing bounds its own mean.
    """
    pairs = pairing.quality("task", "gold_logprob", question.task)
    n = len(pairs.baseline)
    if n < 2:
        why = pairing.why_unmeasured("likelihood") if n == 0 else None
        return Measurement(n=n, method=_MEAN_METHOD, minimum_n=None if why else 2, unmeasured=why)
    estimate = bootstrap_means(
        -pairs.baseline, -pairs.candidate, pairs.clusters, difference,
        margin=question.margin, confidence=question.confidence, resamples=question.resamples, seed=question.seed,
    )  # fmt: skip
    failed_more = pairs.lost > pairs.won
    estimate = without_upper_limit(estimate) if failed_more else estimate
    means = float(pairs.baseline.mean()), float(pairs.candidate.mean())
    chance = partial(
        chance_to_decide_mean, seen=estimate, seen_n=n, clusters=cluster_count(pairs.clusters),
        clusters_with=clusters_by_item, margin=question.margin, confidence=question.confidence,
    )  # fmt: skip
    return Measurement(
        n=n, method=_MEAN_METHOD, baseline=means[0], candidate=means[1], estimate=estimate, chance=chance,
        detail=lost_items(pairing, pairs, "leave the loss without an upper limit" if failed_more else "do not count"),
    )  # fmt: skip


TASK_RULES = (
    _rule("correct", "task accuracy", "answers"),
    _rule("gold_preferred", "right answer the likeliest (likelihood twin)", "likelihood"),
    RuleMetric(
        "gold_logprob", "log-probability of the right answer", ("mean",), {"nats": "nats", "": "nats"}, "nats", "items",
        _gold_logprob,
    ),
)  # fmt: skip
