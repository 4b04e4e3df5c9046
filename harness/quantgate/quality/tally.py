"""Counts what was asked of each arm in each tier and what came of it: no item is dropped in silence."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from quantgate.capabilities.tier_support import TierSupport
from quantgate.store.tier_status import QualityTier, TierStatus

_ITEMS: dict[QualityTier, str] = {"distribution": "sequences", "likelihood": "items", "answers": "items"}


@dataclass(slots=True)
class _Count:
    asked: int = 0
    failed: int = 0
    censored: int = 0
    first_failure: str = ""


class Tally:
    """One count for each tier and arm."""

    def __init__(self) -> None:
        self._counts: dict[tuple[QualityTier, str], _Count] = defaultdict(_Count)

    def asked(self, tier: QualityTier, arm_id: str) -> None:
        self._counts[tier, arm_id].asked += 1

    def failed(self, tier: QualityTier, arm_id: str, reason: str) -> None:
        count = self._counts[tier, arm_id]
        count.failed += 1
        count.first_failure = count.first_failure or reason.rstrip(".")

    def censored(self, tier: QualityTier, arm_id: str) -> None:
        """An item some of whose tokens this arm did not tell; it has no likelihood value on any arm."""
        self._counts[tier, arm_id].censored += 1

    def status(self, tier: QualityTier, arm_id: str, support: TierSupport) -> TierStatus:
        """What was planned (`support`), less what failed."""
        count = self._counts[tier, arm_id]
        items = _ITEMS[tier]
        reasons = [support.reason] if support.reason else []
        if count.failed:
            reasons.append(f"{count.failed} of {count.asked} {items} failed")
        if count.censored:
            reasons.append(
                f"{count.censored} of {count.asked} {items} have a token that it or the baseline does not list, and no "
                "log-likelihood on any arm"
            )
        measured = "partial" if support.status == "exact" and reasons else support.status
        return TierStatus(
            tier=tier,
            arm_id=arm_id,
            status="not_measurable" if count.asked and count.failed == count.asked else measured,
            reason="; ".join(reasons),
            first_failure=count.first_failure,
        )
