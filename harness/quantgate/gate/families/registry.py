"""Every metric that a rule can name. Adding one: write it in its family's file, its family is listed here."""

from __future__ import annotations

from quantgate.gate.families.behaviour import BEHAVIOUR_RULES
from quantgate.gate.families.distribution import DISTRIBUTION_RULES
from quantgate.gate.families.latency import LATENCY_RULES
from quantgate.gate.families.length import LENGTH_RULES
from quantgate.gate.families.preference import PREFERENCE_RULES
from quantgate.gate.families.rule_metric import RuleMetric
from quantgate.gate.families.service import SERVICE_RULES
from quantgate.gate.families.tasks import TASK_RULES

RULE_METRICS: dict[str, RuleMetric] = {
    metric.name: metric
    for metric in (
        *LATENCY_RULES, *SERVICE_RULES, *TASK_RULES, *DISTRIBUTION_RULES, *BEHAVIOUR_RULES, *LENGTH_RULES,
        *PREFERENCE_RULES,
    )
}  # fmt: skip
