"""What a rule's outcome becomes beside the run's own noise, the other rules and the policy's waivers."""

from __future__ import annotations

from datetime import date

from quantgate.gate import reasons
from quantgate.gate.margin import Margin
from quantgate.gate.policy import Policy, Waiver
from quantgate.gate.verdict_model import RuleResult
from quantgate.stats.holm import holm
from quantgate_engine.errors import ConfigurationError


def beside_noise(result: RuleResult, aa: RuleResult | None) -> RuleResult:
    """Uninformative where the baseline against itself differs by more than the margin, in either direction.

    A loss whose lower limit lies beyond margin and noise together stays a failure: noise cannot explain it.
    """
    if aa is None:
        return result
    seen = result.model_copy(update={"aa_estimate": aa.estimate, "aa_interval": aa.interval})
    aa_lower, aa_upper = aa.interval
    if result.outcome == "uninformative" or aa.estimate is None or aa_lower is None or aa_upper is None:
        return seen
    if aa_lower <= result.margin and aa_upper >= -result.margin:
        return seen
    noise = max(abs(aa_lower), abs(aa_upper))
    lower = result.interval[0]
    if result.outcome == "fail" and lower is not None and lower > result.margin + noise:
        return seen
    reason = reasons.at_own_noise(aa.interval, Margin(result.margin, result.unit))
    return seen.model_copy(update={"outcome": "uninformative", "reason": reason})


def waive(result: RuleResult, waivers: dict[str, Waiver]) -> RuleResult:
    """`waivers`: those of this arm, by rule."""
    waiver = waivers.get(result.rule)
    if waiver is None:
        return result
    notice = f"waived until {waiver.expires.isoformat()}: {waiver.reason}"
    return result.model_copy(update={"waived": notice})


def confirm_failures(results: list[RuleResult], confidence: float) -> list[RuleResult]:
    """Holm's correction over the arm's rules: a failure that it does not confirm is inconclusive.

    Waived and uninformative rules decide nothing and therefore do not count.
    """
    tested = [
        index
        for index, result in enumerate(results)
        if result.p_value is not None and not result.waived and result.outcome != "uninformative"
    ]
    adjusted = dict(zip(tested, holm([results[index].p_value or 0.0 for index in tested]), strict=True))
    corrected = []
    for index, result in enumerate(results):
        changes: dict[str, object] = {"holm_p_value": adjusted.get(index)}
        if result.outcome == "fail" and index in adjusted and adjusted[index] >= 1 - confidence:
            reason = reasons.not_confirmed(result.reason, adjusted[index], len(tested))
            changes |= {"outcome": "inconclusive", "reason": reason}
        corrected.append(result.model_copy(update=changes))
    return corrected


def waivers_by_arm(policy: Policy, today: date) -> dict[str, dict[str, Waiver]]:
    """Raises ConfigurationError where a waiver has run out: someone must decide again, not forget."""
    found: dict[str, dict[str, Waiver]] = {}
    for waiver in policy.waivers:
        if today > waiver.expires:
            raise ConfigurationError(
                f"Policy {policy.name}: the waiver of rule {waiver.rule} for arm {waiver.arm} expired on "
                f"{waiver.expires.isoformat()} ({waiver.reason}); renew it or remove it."
            )
        found.setdefault(waiver.arm, {})[waiver.rule] = waiver
    return found
