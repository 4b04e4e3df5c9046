"""From the outcomes of an arm's rules and gains to its verdict and the sentences that explain it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quantgate.gate.outcome import all_of, any_of
from quantgate.gate.policy import Policy
from quantgate.gate.verdict_model import ArmVerdict, GainResult, Outcome, RuleResult, VerdictWord
from quantgate_engine.counted import plural


def judge_arm(rules: list[RuleResult], gains: list[GainResult], policy: Policy, noise_measured: bool) -> ArmVerdict:
    """ship: every required rule passes, none fails, the gain is shown; do_not_ship: a rule or the gain fails."""
    counted = [rule for rule in rules if not rule.waived]
    required = {rule.name for rule in policy.rules if rule.required}
    gain = combined_gain(gains, policy)
    failed = [rule for rule in counted if rule.outcome == "fail"]
    open_rules = [rule for rule in counted if rule.rule in required and rule.outcome not in ("pass", "fail")]
    noise_missing = policy.aa.required and not noise_measured
    verdict: VerdictWord
    if failed or gain == "fail":
        verdict = "do_not_ship"
    elif open_rules or noise_missing or gain not in ("pass", None):
        verdict = "not_enough_evidence"
    else:
        verdict = "ship"
    return ArmVerdict(
        verdict=verdict,
        reasons=[
            *(f"{rule.title}: {rule.reason}" for rule in failed),
            *_gain_sentences(gains, gain),
            *_noise_sentence(noise_missing),
            *(f"{rule.title}, {rule.outcome}: {rule.reason}" for rule in open_rules),
            *_clear_sentence(counted, verdict),
            *(f"{rule.title}: not counted, {rule.waived}." for rule in rules if rule.waived),
        ],
        rules=rules,
        gains=gains,
        gain_outcome=gain,
    )


def invalid_arm(reasons: list[str]) -> ArmVerdict:
    """An arm that was not given the load that it should have carried gets no verdict."""
    return ArmVerdict(verdict="invalid", reasons=reasons, rules=[], gains=[], gain_outcome=None)


def combined_gain(gains: Sequence[GainResult], policy: Policy) -> Outcome | None:
    """None where the policy asks for no gain."""
    if policy.gain is None:
        return None
    combine: Callable[[list[Outcome]], Outcome] = any_of if policy.gain.any is not None else all_of
    return combine([gain.outcome for gain in gains])


def _gain_sentences(gains: Sequence[GainResult], outcome: Outcome | None) -> list[str]:
    openings: dict[Outcome | None, str] = {
        "pass": "It brings what the policy asks for",
        "fail": "It does not bring what the policy asks for, and a build that gains nothing is not shipped",
        "inconclusive": "Whether it brings what the policy asks for is not shown",
    }
    if outcome not in openings:
        return []
    told = [gain for gain in gains if gain.outcome == outcome] or list(gains)
    details = "; ".join(f"{gain.title} {gain.reason.rstrip('.')}" for gain in told)
    return [f"{openings[outcome]}: {details}."]


def _noise_sentence(missing: bool) -> list[str]:
    sentence = (
        "The run did not measure the baseline against itself, which the policy requires before anything may ship; "
        "run again with the A/A arm."
    )
    return [sentence] if missing else []


def _clear_sentence(counted: Sequence[RuleResult], verdict: VerdictWord) -> list[str]:
    if verdict != "ship":
        return []
    undecided = [rule.title for rule in counted if rule.outcome != "pass"]
    aside = f"; undecided and not required: {', '.join(undecided)}" if undecided else ""
    return [
        f"{len(counted) - len(undecided)} of {len(counted)} {plural(len(counted), 'rule')} passed, the loss lies "
        f"within the margin{aside}."
    ]
