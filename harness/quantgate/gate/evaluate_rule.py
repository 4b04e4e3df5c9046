"""One rule on one pair of arms: measured, decided, and put into words. Corrections over rules come later."""

from __future__ import annotations

from quantgate.gate import reasons
from quantgate.gate.evidence import Pairing
from quantgate.gate.families.registry import RULE_METRICS
from quantgate.gate.families.rule_metric import Measurement, RuleQuestion
from quantgate.gate.margin import Margin
from quantgate.gate.outcome import loss_outcome
from quantgate.gate.policy import Policy, Rule
from quantgate.gate.policy_fit import absent_subject
from quantgate.gate.verdict_model import Outcome, RuleResult
from quantgate.gate.wording import finite
from quantgate.stats.power import minimum_detectable_effect
from quantgate.stats.sample_size import needed_n

Decision = tuple[Outcome, str, int | None]
"""(outcome, reason, items that would decide)"""


def evaluate_rule(pairing: Pairing, rule: Rule, policy: Policy, seed: int) -> RuleResult:
    metric = RULE_METRICS[rule.metric]
    margin = rule.loss_margin
    measured = metric.measure(
        pairing,
        RuleQuestion(
            statistic=rule.chosen_statistic, loss_unit=margin.unit, margin=margin.value, confidence=policy.confidence,
            resamples=policy.resamples, seed=seed, slo_class=rule.slo_class, task=rule.task,
            slo_limits=policy.slo_limits,
        ),
    )  # fmt: skip
    absent = absent_subject(pairing, rule)
    decision: Decision = ("inconclusive", absent, None) if absent else _decide(rule, measured, margin, policy)
    outcome, reason, n_needed = decision
    estimate = measured.estimate
    return RuleResult(
        rule=rule.name,
        title=reasons.rule_title(metric, rule.chosen_statistic, rule.slo_class, rule.task),
        outcome=outcome,
        metric=rule.metric,
        unit=margin.unit,
        value_unit=metric.value_unit,
        baseline=finite(measured.baseline),
        candidate=finite(measured.candidate),
        estimate=finite(estimate.value) if estimate else None,
        interval=(finite(estimate.interval.lower), finite(estimate.interval.upper)) if estimate else (None, None),
        margin=margin.value,
        n=measured.n,
        mde=_detectable_loss(measured, policy),
        n_needed=n_needed,
        p_value=estimate.p_value if estimate else None,
        method=measured.method,
        reason=reason,
        counts=dict(measured.counts),
    )


def _detectable_loss(measured: Measurement, policy: Policy) -> float | None:
    if measured.detectable is not None:
        return finite(measured.detectable(policy.power))
    if measured.estimate is None:
        return None
    return finite(minimum_detectable_effect(measured.estimate.standard_error, policy.confidence, policy.power))


def _decide(rule: Rule, measured: Measurement, margin: Margin, policy: Policy) -> Decision:
    metric = RULE_METRICS[rule.metric]
    if measured.uninformative is not None:
        return "uninformative", f"{measured.uninformative[0].upper()}{measured.uninformative[1:]}.", None
    estimate = measured.estimate
    if estimate is None:
        return "inconclusive", reasons.no_number(metric, measured, rule.chosen_statistic), measured.minimum_n
    outcome = loss_outcome(estimate.interval, margin.value)
    wanted = None
    if outcome == "inconclusive" and measured.chance is not None:
        wanted = needed_n(measured.chance, above=measured.n, power=policy.power)
    return outcome, reasons.rule_reason(metric, measured, margin, outcome, wanted), wanted
