"""The first screen: what was decided for each arm, why, what it would save, and what remains uncertain."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from quantgate.gate.verdict_model import ArmVerdict, GainResult, RuleResult, VerdictWord
from quantgate.report.charts.forest import Whisker, forest_row
from quantgate.report.numbers import NOTHING, count, in_unit, limits, percent, signed_percent
from quantgate.report.run_view import RunView
from quantgate.report.sections.savings import savings_lines

VERDICT_WORDS: dict[VerdictWord, tuple[str, str, str]] = {
    "ship": ("✓", "Ship", "Every rule passed and the required gain was shown."),
    "do_not_ship": ("✕", "Do not ship", "A rule failed, or the required gain is missing."),
    "not_enough_evidence": ("?", "Not enough evidence", "The run can neither clear this arm nor convict it."),
    "invalid": ("!", "Invalid run", "The run did not deliver its load, so it gets no verdict."),
}
"""Verdict -> (symbol, words, what it means)."""

OUTCOME_WORDS = {
    "pass": ("✓", "pass"),
    "fail": ("✕", "fail"),
    "inconclusive": ("?", "inconclusive"),
    "uninformative": ("○", "uninformative"),
}


@dataclass(frozen=True)
class RuleRow:
    """One rule or gain, in words."""

    title: str
    outcome: str
    symbol: str
    outcome_word: str
    baseline: str
    candidate: str
    estimate: str
    interval: str
    threshold: str
    items: str
    mde: str
    reason: str
    method: str
    aa: str
    waived: str | None
    forest: Markup | None


@dataclass(frozen=True)
class ArmCard:
    arm_id: str
    verdict: str
    symbol: str
    words: str
    meaning: str
    reasons: list[str]
    savings: list[str]
    uncertain: list[str]
    rules: list[RuleRow]
    gains: list[RuleRow]


def arm_cards(view: RunView) -> list[ArmCard]:
    if view.verdict is None:
        return []
    return [_card(view, arm_id, arm) for arm_id, arm in view.verdict.arms.items()]


def aa_rows(view: RunView) -> list[RuleRow]:
    """The rules applied to the baseline against itself."""
    return [rule_row(rule) for rule in view.verdict.aa] if view.verdict else []


def rule_row(rule: RuleResult) -> RuleRow:
    symbol, word = OUTCOME_WORDS[rule.outcome]
    low, high = rule.interval
    aa_low, aa_high = rule.aa_interval or (None, None)
    needed = f" (about {count(rule.n_needed)} needed)" if rule.n_needed else ""
    return RuleRow(
        title=rule.title,
        outcome=rule.outcome,
        symbol=symbol,
        outcome_word=word,
        baseline=in_unit(rule.baseline, rule.value_unit),
        candidate=in_unit(rule.candidate, rule.value_unit),
        estimate=in_unit(rule.estimate, rule.unit),
        interval=_interval(low, high, rule.unit),
        threshold=in_unit(rule.margin, rule.unit),
        items=count(rule.n) + needed,
        mde=in_unit(rule.mde, rule.unit),
        reason=rule.reason,
        method=rule.method,
        aa=NOTHING
        if rule.aa_estimate is None
        else f"{in_unit(rule.aa_estimate, rule.unit)} {_interval(aa_low, aa_high, rule.unit)}",
        waived=rule.waived,
        forest=_forest(rule),
    )


def _forest(rule: RuleResult) -> Markup | None:
    if rule.margin <= 0 or rule.estimate is None:
        return None
    loss = Whisker(*(_in_margins(value, rule.margin) for value in (rule.estimate, *rule.interval)))
    aa_values = (rule.aa_estimate, *(rule.aa_interval or (None, None)))
    aa = Whisker(*(_in_margins(value, rule.margin) for value in aa_values)) if rule.aa_estimate is not None else None
    description = (
        f"Loss {in_unit(rule.estimate, rule.unit)}, interval {_interval(*rule.interval, rule.unit)}, "
        f"margin {in_unit(rule.margin, rule.unit)}: {OUTCOME_WORDS[rule.outcome][1]}."
    )
    return forest_row(description, loss, aa, rule.outcome, "margin")


def _in_margins(value: float | None, margin: float) -> float | None:
    return None if value is None else value / margin


def _interval(low: float | None, high: float | None, unit: str) -> str:
    if low is None and high is None:
        return "no interval"
    return limits(low, high, lambda value: in_unit(value, unit))


def _gain_row(gain: GainResult) -> RuleRow:
    symbol, word = OUTCOME_WORDS[gain.outcome]
    low, high = gain.interval
    return RuleRow(
        title=gain.title,
        outcome=gain.outcome,
        symbol=symbol,
        outcome_word=word,
        baseline=in_unit(gain.baseline, gain.value_unit),
        candidate=in_unit(gain.candidate, gain.value_unit),
        estimate=signed_percent(gain.estimate),
        interval="exact" if low is not None and low == high else _interval(low, high, "ratio"),
        threshold=f"at least {percent(gain.required)}",
        items=count(gain.n),
        mde=NOTHING,
        reason=gain.reason,
        method=gain.method,
        aa=NOTHING,
        waived=None,
        forest=None,
    )


def _card(view: RunView, arm_id: str, arm: ArmVerdict) -> ArmCard:
    symbol, words, meaning = VERDICT_WORDS[arm.verdict]
    open_rules = [rule for rule in arm.rules if rule.outcome in ("inconclusive", "uninformative")]
    return ArmCard(
        arm_id=arm_id,
        verdict=arm.verdict,
        symbol=symbol,
        words=words,
        meaning=meaning,
        reasons=arm.reasons,
        savings=_savings(view, arm_id),
        uncertain=[f"{rule.title}: {rule.reason}" for rule in open_rules],
        rules=[rule_row(rule) for rule in arm.rules],
        gains=[_gain_row(gain) for gain in arm.gains],
    )


def _savings(view: RunView, arm_id: str) -> list[str]:
    return next((savings_lines(view, arm) for arm in view.arms if arm.arm_id == arm_id), [])
