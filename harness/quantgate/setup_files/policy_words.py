"""What a policy asks for, in words."""

from __future__ import annotations

from quantgate.gate.families.registry import RULE_METRICS
from quantgate.gate.gains.registry import GAIN_METRICS
from quantgate.gate.policy import Gain, GainRule, Policy, Rule
from quantgate.gate.reasons import rule_title
from quantgate.gate.wording import write
from quantgate.stats.percentile import minimum_n

_QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
_UNITS = {"ratio": "worse than the baseline", "pp": "worse", "ms": "more"}


def policy_words(policy: Policy) -> list[str]:
    """One line a demand: limits, rules, gain, certainty, waivers, and what must be equal."""
    return [
        *_limits(policy),
        "A candidate may lose no more than this:",
        *(f"  {_rule(rule, policy)}" for rule in policy.rules),
        *_gain(policy.gain),
        f"Certainty: {policy.confidence:.0%} intervals; the smallest loss that a rule can find is told for a chance of "
        f"{policy.power:.0%}.",
        _noise(policy),
        *(
            f"Waived for {waiver.arm} until {waiver.expires.isoformat()}: {waiver.rule} ({waiver.reason})"
            for waiver in policy.waivers
        ),
        f"Must be equal on all arms: {', '.join(policy.must_match) or 'nothing'}.",
    ]


def _limits(policy: Policy) -> list[str]:
    if not policy.slo:
        return ["No SLO: goodput is not told, and no request counts as too slow."]
    return [
        f"SLO of {name} requests: "
        + (", ".join(f"{metric} {write(limit, 'ms')}" for metric, limit in limits.items()) or "they must finish")
        for name, limits in policy.slo_limits.items()
    ]


def _rule(rule: Rule, policy: Policy) -> str:
    metric, margin = RULE_METRICS[rule.metric], rule.loss_margin
    title = rule_title(metric, rule.chosen_statistic, rule.slo_class, rule.task)
    words = f"{rule.name}: {title}, at most {write(margin.value, margin.unit)} {_UNITS.get(margin.unit, '')}".rstrip()
    if rule.chosen_statistic in _QUANTILES:
        words += f"; needs {minimum_n(_QUANTILES[rule.chosen_statistic], policy.confidence)} {metric.items} or more"
    return words if rule.required else f"{words}; may stay undecided"


def _gain(gain: Gain | None) -> list[str]:
    if gain is None:
        return ["It need bring nothing."]
    which = "one" if gain.any is not None else "all"
    return [f"It must bring {which} of this:", *(f"  {_gain_rule(rule)}" for rule in gain.rules)]


def _gain_rule(rule: GainRule) -> str:
    metric = GAIN_METRICS[rule.metric]
    statistic = [] if rule.chosen_statistic in ("exact", "mean") else [rule.chosen_statistic]
    words = [metric.title, *statistic, *([f"of {rule.slo_class} requests"] if rule.slo_class else [])]
    return f"{' '.join(words)}: at least {write(rule.required_share, 'ratio')} less than the baseline"


def _noise(policy: Policy) -> str:
    if policy.aa.required:
        return "The run must measure the baseline against itself before anything may ship."
    return "The run need not measure the baseline against itself."
