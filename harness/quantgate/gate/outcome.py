"""The three-way outcome of an interval against a limit, and how several outcomes make one."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.gate.verdict_model import Outcome
from quantgate.stats.interval import Interval


def loss_outcome(interval: Interval, margin: float) -> Outcome:
    """pass: the upper limit lies below the margin; fail: the lower limit lies above it; else inconclusive."""
    if interval.upper < margin:
        return "pass"
    return "fail" if interval.lower > margin else "inconclusive"


def gain_outcome(interval: Interval, required: float) -> Outcome:
    """pass: the lower limit reaches what is required; fail: the upper limit lies below it; else inconclusive."""
    if interval.lower >= required:
        return "pass"
    return "fail" if interval.upper < required else "inconclusive"


def any_of(outcomes: Iterable[Outcome]) -> Outcome:
    """pass if one passes, fail if all fail, else inconclusive."""
    seen = set(outcomes)
    if "pass" in seen:
        return "pass"
    return "fail" if seen == {"fail"} else "inconclusive"


def all_of(outcomes: Iterable[Outcome]) -> Outcome:
    """fail if one fails, pass if all pass, else inconclusive."""
    seen = set(outcomes)
    if "fail" in seen:
        return "fail"
    return "pass" if seen == {"pass"} else "inconclusive"
