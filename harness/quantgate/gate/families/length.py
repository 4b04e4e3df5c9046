"""Rule about the length of answers: what the model decides for itself where the replay does not force it.

Forced lengths are measured all the same: a server may not keep to them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from quantgate.gate.evidence import Pairing
from quantgate.gate.families.rule_metric import Measurement, RuleMetric, RuleQuestion
from quantgate.metrics.failed import FAILED
from quantgate.metrics.output_tokens import OUTPUT_TOKENS
from quantgate.stats.bootstrap import bootstrap_means, relative
from quantgate.stats.clusters import cluster_count
from quantgate.stats.interval import size_of_change
from quantgate.stats.mean_chances import chance_to_decide_mean, clusters_by_run

_METHOD = "paired bootstrap of the ratio of means, both directions"


def finished_on_both(pairs: Pairing) -> NDArray[np.bool_]:
    """Which requests came to an end on both arms: a failure, or a planned disconnect, cuts an answer short."""
    return np.asarray((FAILED(pairs.baseline) == 0) & (FAILED(pairs.candidate) == 0))


def _length_change(pairing: Pairing, question: RuleQuestion) -> Measurement:
    """|candidate mean / baseline mean - 1|: longer answers cost more, shorter ones leave something out."""
    pairs = pairing.of_class(question.slo_class)
    served = finished_on_both(pairs)
    baseline, candidate = OUTPUT_TOKENS(pairs.baseline)[served], OUTPUT_TOKENS(pairs.candidate)[served]
    n = len(baseline)
    if n < 2:
        return Measurement(n=n, method=_METHOD, minimum_n=2)
    if baseline.sum() == 0:
        return Measurement(n=n, method=_METHOD, uninformative="the baseline's own answers have no tokens")
    clusters = np.unique(pairs.clusters[served], return_inverse=True)[1]
    longer, shorter = (
        bootstrap_means(
            baseline, candidate, clusters, compare,
            margin=question.margin, confidence=question.confidence, resamples=question.resamples, seed=question.seed,
        )
        for compare in (relative, lambda b, c: -relative(b, c))
    )  # fmt: skip
    estimate = size_of_change(longer, shorter)
    return Measurement(
        n=n,
        method=_METHOD,
        baseline=float(baseline.mean()),
        candidate=float(candidate.mean()),
        estimate=estimate,
        chance=partial(
            chance_to_decide_mean, seen=estimate, seen_n=n, clusters=cluster_count(clusters),
            clusters_with=clusters_by_run, margin=question.margin, confidence=question.confidence, either_way=True,
        ),
    )  # fmt: skip


LENGTH_RULES = (
    RuleMetric(
        "output_length_change",
        "answer length change",
        ("mean",),
        {"%": "ratio"},
        "tokens",
        "requests",
        _length_change,
    ),
)
