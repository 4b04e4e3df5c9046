"""Why a rule or a gain came out as it did, in one sentence with numbers and units."""

from __future__ import annotations

from quantgate.gate.families.rule_metric import Measurement, RuleMetric
from quantgate.gate.gains.gain_metric import GainMeasurement
from quantgate.gate.margin import Margin
from quantgate.gate.verdict_model import Outcome
from quantgate.gate.wording import write, write_signed
from quantgate.stats.interval import Interval
from quantgate_engine.counted import counted


def rule_title(metric: RuleMetric, statistic: str, slo_class: str | None, task: str | None) -> str:
    words = [metric.title]
    if statistic not in ("rate", "mean"):
        words.append(statistic)
    if slo_class:
        words.append(f"of {slo_class} requests")
    if task:
        words.append(f"on {task}")
    return " ".join(words)


def no_number(metric: RuleMetric, measured: Measurement, statistic: str) -> str:
    """Why there is no estimate."""
    if measured.unmeasured is not None:
        return f"Not measurable: {measured.unmeasured}."
    if measured.minimum_n is not None:
        detail = f" {measured.detail}" if measured.detail else ""
        return (
            f"{measured.n} {metric.items} carry no interval of {statistic}; at least {measured.minimum_n} are needed."
            f"{detail}"
        )
    return f"The run has no {metric.items} for this rule."


def rule_reason(
    metric: RuleMetric, measured: Measurement, margin: Margin, outcome: Outcome, n_needed: int | None
) -> str:
    """The loss, its interval, where they lie against the margin, and what would decide."""
    estimate = measured.estimate
    if estimate is None:
        raise ValueError("a reason with numbers needs an estimate")
    numbers = f"loss {write_signed(estimate.value, margin.unit)} ({_interval(estimate.interval, margin.unit)})"
    if measured.baseline is not None:
        numbers += (
            f", from {write(measured.baseline, metric.value_unit)} to {write(measured.candidate, metric.value_unit)}"
        )
    limit = write(margin.value, margin.unit)
    detail = f" {measured.detail}" if measured.detail else ""
    if outcome == "pass":
        return f"{numbers}: within the margin of {limit}.{detail}"
    if outcome == "fail":
        return f"{numbers}: beyond the margin of {limit}.{detail}"
    more = f"; about {n_needed:,} such {metric.items} would decide, this run has {measured.n:,}" if n_needed else ""
    return f"{numbers}: the interval holds the margin of {limit}{more}.{detail}"


def at_own_noise(aa_interval: tuple[float | None, float | None], margin: Margin) -> str:
    lower, upper = aa_interval
    return (
        f"The baseline against itself differs by {write_signed(lower, margin.unit)} to "
        f"{write_signed(upper, margin.unit)}, which is more than the margin of {write(margin.value, margin.unit)}: "
        "this run's noise hides the answer."
    )


def not_confirmed(reason: str, holm_p: float, rules: int) -> str:
    return f"{reason} Not confirmed over {counted(rules, 'rule')} at once (Holm p {holm_p:.3g})."


def gain_reason(measured: GainMeasurement, required: float, outcome: Outcome, unit: str) -> str:
    if measured.estimate is None or measured.interval is None:
        return f"{measured.shortfall or 'was not measured'}."
    exact = measured.interval.lower == measured.interval.upper
    spread = "" if exact else f" ({_interval(measured.interval, 'ratio')})"
    numbers = (
        f"{write(measured.estimate, 'ratio')} less{spread}, from {write(measured.baseline, unit)} to "
        f"{write(measured.candidate, unit)}"
        if measured.estimate >= 0
        else f"{write(-measured.estimate, 'ratio')} more{spread}, from {write(measured.baseline, unit)} to "
        f"{write(measured.candidate, unit)}"
    )
    needed = write(required, "ratio")
    endings: dict[Outcome, str] = {
        "pass": f"at least {needed} less was asked for.",
        "fail": f"short of the {needed} less that was asked for.",
        "inconclusive": f"the interval holds the {needed} less that was asked for.",
    }
    detail = f" {measured.detail}" if measured.detail else ""
    return f"{numbers}: {endings[outcome]}{detail}"


def _interval(interval: Interval, unit: str) -> str:
    return f"interval {write_signed(interval.lower, unit)} to {write_signed(interval.upper, unit)}"
