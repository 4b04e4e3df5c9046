"""Gains in time: 1 - candidate / baseline, measured as the rules measure their losses."""

from __future__ import annotations

import math

from quantgate.gate.evidence import Pairing
from quantgate.gate.families.latency import LATENCY_RULES
from quantgate.gate.families.rule_metric import RuleMetric, RuleQuestion
from quantgate.gate.gains.gain_metric import GainMeasurement, GainMetric, GainQuestion
from quantgate.stats.interval import Interval
from quantgate_engine.counted import counted


def _gain(rule: RuleMetric) -> GainMetric:
    def measure(pairing: Pairing, question: GainQuestion) -> GainMeasurement:
        measured = rule.measure(
            pairing,
            RuleQuestion(
                statistic=question.statistic, loss_unit="ratio", margin=-question.required,
                confidence=question.confidence, resamples=question.resamples, seed=question.seed,
                slo_class=question.slo_class,
            ),
        )  # fmt: skip
        loss = measured.estimate
        if loss is None:
            found = counted(measured.n, "request")
            few = f"from {found}, at least {measured.minimum_n} are needed. {measured.detail}".rstrip(" .")
            why = f": {measured.uninformative}" if measured.uninformative else f" {few}"
            return GainMeasurement(measured.n, measured.method, shortfall=f"cannot be told{why}")
        reversed_loss = Interval(-loss.interval.upper, -loss.interval.lower)
        if math.isinf(loss.value):
            return GainMeasurement(
                measured.n, measured.method, measured.baseline, interval=reversed_loss,
                shortfall=f"has no value: {measured.detail.rstrip('.')}",
            )  # fmt: skip
        return GainMeasurement(
            measured.n, measured.method, measured.baseline, measured.candidate,
            estimate=-loss.value, interval=reversed_loss, detail=measured.detail,
        )  # fmt: skip

    return GainMetric(rule.name, rule.title, rule.statistics, rule.value_unit, by_class=True, measure=measure)


SPEED_GAINS = tuple(_gain(rule) for rule in LATENCY_RULES)
