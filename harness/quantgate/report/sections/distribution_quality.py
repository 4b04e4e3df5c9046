"""The distribution tier in words: how far each arm's next-token probabilities lie from the baseline's."""

from __future__ import annotations

import math
from collections.abc import Callable

from quantgate.metrics.columns import floats, is_equal
from quantgate.report.estimates import Estimate, mean_by_cluster
from quantgate.report.figures import Table
from quantgate.report.numbers import percent, significant, with_interval
from quantgate.report.run_view import ArmView, RunView, rows_where, texts

_METRICS: dict[str, tuple[str, str, Callable[[float | None], str]]] = {
    "kl": ("KL divergence, mean", "nats per token", significant),
    "kl_p99": ("KL divergence, 99th percentile of a sequence, mean", "nats per token", significant),
    "kl_topk": ("KL divergence over the listed tokens, mean; a lower bound", "nats per token", significant),
    "kl_topk_p99": (
        "KL divergence over the listed tokens, 99th percentile of a sequence, mean; a lower bound",
        "nats per token",
        significant,
    ),
    "top1_agreement": ("Same most likely token", "share of positions", percent),
    "first_token_agreement": ("Same first token", "share of answers", percent),
    "nll_delta": ("Perplexity ratio", "1 is no change", significant),
    "first_divergence_fraction": ("Agreed part before the first difference", "share of the answer", percent),
}


def distribution_table(view: RunView) -> Table | None:
    arms = [arm for arm in view.arms if is_equal(arm.quality, "tier", "distribution").any()]
    if not arms:
        return None
    rows = []
    for metric, (title, unit, write) in _METRICS.items():
        estimates = [_estimate(arm, metric) for arm in arms]
        if not any(estimates):
            continue
        rows.append([f"{title} ({unit})", *(with_interval(estimate, write) for estimate in estimates)])
    return Table(["measure", *(arm.arm_id for arm in arms)], rows)


def _estimate(arm: ArmView, metric: str) -> Estimate | None:
    rows = rows_where(rows_where(arm.quality, "tier", "distribution"), "metric", metric)
    estimate = mean_by_cluster(floats(rows, "value"), texts(rows, "cluster_id"))
    if metric == "nll_delta" and estimate is not None:
        # exp(mean log ratio) is the perplexity ratio; exp keeps order, so it carries the interval over.
        low, high = estimate.low, estimate.high
        return Estimate(
            math.exp(estimate.value),
            None if low is None else math.exp(low),
            None if high is None else math.exp(high),
            estimate.n,
        )
    return estimate
