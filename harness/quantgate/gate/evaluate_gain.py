"""One required gain on one pair of arms."""

from __future__ import annotations

from quantgate.gate import reasons
from quantgate.gate.evidence import Pairing
from quantgate.gate.gains.gain_metric import GainQuestion
from quantgate.gate.gains.registry import GAIN_METRICS
from quantgate.gate.outcome import gain_outcome
from quantgate.gate.policy import GainRule, Policy
from quantgate.gate.policy_fit import absent_subject
from quantgate.gate.verdict_model import GainResult, Outcome
from quantgate.gate.wording import finite
from quantgate.store.manifest import ArmManifest


def evaluate_gain(
    pairing: Pairing, gain: GainRule, policy: Policy, arms: tuple[ArmManifest, ArmManifest], seed: int
) -> GainResult:
    """`arms`: the baseline's and the candidate's manifest."""
    metric = GAIN_METRICS[gain.metric]
    measured = metric.measure(
        pairing,
        GainQuestion(
            statistic=gain.chosen_statistic, slo_class=gain.slo_class, required=gain.required_share,
            confidence=policy.confidence, resamples=policy.resamples, seed=seed,
            baseline_arm=arms[0], candidate_arm=arms[1],
        ),
    )  # fmt: skip
    interval = measured.interval
    outcome: Outcome = gain_outcome(interval, gain.required_share) if interval else "inconclusive"
    words = [metric.title] + ([] if gain.chosen_statistic in ("exact", "mean") else [gain.chosen_statistic])
    return GainResult(
        gain=gain.name,
        title=" ".join([*words, *([f"of {gain.slo_class} requests"] if gain.slo_class else [])]),
        metric=gain.metric,
        outcome=outcome,
        baseline=finite(measured.baseline),
        candidate=finite(measured.candidate),
        estimate=finite(measured.estimate),
        interval=(finite(interval.lower), finite(interval.upper)) if interval else (None, None),
        required=gain.required_share,
        n=measured.n,
        method=measured.method,
        reason=absent_subject(pairing, gain)
        or reasons.gain_reason(measured, gain.required_share, outcome, metric.value_unit),
        value_unit=metric.value_unit,
    )
