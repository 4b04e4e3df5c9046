"""Rules about times of requests, paired request by request."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from quantgate.gate.evidence import Pairing
from quantgate.gate.families.paired_times import PairedTimes
from quantgate.gate.families.rule_metric import Measurement, RuleMetric, RuleQuestion
from quantgate.stats.bootstrap import bootstrap_means, bootstrap_percentiles, difference, relative
from quantgate.stats.clusters import cluster_count
from quantgate.stats.interval import without_upper_limit
from quantgate.stats.mean_chances import chance_to_decide_mean, clusters_by_run
from quantgate.stats.percentile import minimum_n, percentile

_QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
_COMPARE = {"ratio": relative, "ms": difference}
_MARGIN_UNITS = {"%": "ratio", "ms": "ms", "": "ms"}
_METHOD = "paired bootstrap over clusters of neighbouring requests"


def _measure(name: str, pairing: Pairing, question: RuleQuestion) -> Measurement:
    """An unanswered request counts as infinitely slow: an arm must not gain by failing its slow requests.

    A mean has no room for it and is that of the pairs which both arms served. Where the candidate lacks more of them
    than the baseline does, its own mean is larger than what is seen of it, by nobody knows how much.
    """
    quantile = _QUANTILES.get(question.statistic)
    all_pairs = PairedTimes.of(name, pairing.of_class(question.slo_class))
    pairs = all_pairs if quantile else all_pairs.served
    baseline, candidate, n = pairs.baseline, pairs.candidate, len(pairs.baseline)
    lacking = all_pairs.words(mean=quantile is None)
    least = minimum_n(quantile, question.confidence) if quantile else 2
    if n < least:
        return Measurement(n=n, method=_METHOD, minimum_n=least, detail=lacking)
    own = [float(v.mean()) if quantile is None else percentile(v, quantile) for v in (baseline, candidate)]
    if reason := _says_nothing(own[0], pairing.baseline_id, question.statistic):
        return Measurement(n=n, method=_METHOD, uninformative=reason)
    clusters = np.unique(pairs.clusters, return_inverse=True)[1]
    shared = {"margin": question.margin, "confidence": question.confidence}
    compare = _COMPARE[question.loss_unit]
    if quantile is None:
        estimate = bootstrap_means(
            baseline, candidate, clusters, compare, **shared, resamples=question.resamples, seed=question.seed
        )
        estimate = without_upper_limit(estimate) if all_pairs.favours_candidate else estimate
    else:
        estimate = bootstrap_percentiles(
            baseline, candidate, clusters, compare, **shared,
            quantile=quantile, resamples=question.resamples, seed=question.seed,
        )  # fmt: skip
    chance = partial(
        chance_to_decide_mean, seen=estimate, seen_n=n, clusters=cluster_count(clusters),
        clusters_with=clusters_by_run, margin=question.margin, confidence=question.confidence,
    )  # fmt: skip
    return Measurement(
        n=n, method=_METHOD, baseline=own[0], candidate=own[1], estimate=estimate, chance=chance,
        detail=lacking,
    )  # fmt: skip


def _says_nothing(own: float, baseline_id: str, statistic: str) -> str | None:
    """Why no loss can be told from the baseline's own value; None where it can."""
    if math.isinf(own):
        return f"so many requests went unanswered on {baseline_id} that its {statistic} is one of them"
    return None if own > 0 else f"the baseline's own value is {own:g}, so that no loss can be told from it"


def _rule(name: str, title: str) -> RuleMetric:
    def measure(pairing: Pairing, question: RuleQuestion) -> Measurement:
        return _measure(name, pairing, question)

    return RuleMetric(name, title, (*_QUANTILES, "mean"), _MARGIN_UNITS, "ms", "requests", measure)


LATENCY_RULES = (
    _rule("ttft_ms", "TTFT"),
    _rule("ttft_from_sent_ms", "TTFT from sending"),
    _rule("time_to_first_answer_ms", "time to the first answer token"),
    _rule("tpot_ms", "TPOT"),
    _rule("longest_gap_ms", "longest gap between tokens"),
    _rule("e2e_ms", "end-to-end time"),
    _rule("queue_time_ms", "queue time"),
    _rule("prefill_latency_ms", "prefill latency"),
    _rule("decode_latency_ms", "decode latency"),
)
