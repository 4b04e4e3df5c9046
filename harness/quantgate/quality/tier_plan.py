"""On which arms each tier is measured, and in which form: every arm is held to what the poorest of them gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quantgate.capabilities.tier_support import TierSupport, not_measurable, partial
from quantgate.quality.quality_model import ArmSupport, QualityModel
from quantgate.store.tier_status import QualityTier


@dataclass(frozen=True, slots=True)
class TierPlan:
    """`support` tells of every arm, in the arms' order; `alternatives` is None for whole distributions."""

    support: Mapping[str, TierSupport]
    alternatives: int | None = None

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms on which the tier is measured; none where the baseline does not allow it."""
        return tuple(arm_id for arm_id, support in self.support.items() if support.status != "not_measurable")


def plan_distribution(arms: Mapping[str, QualityModel], baseline_id: str) -> TierPlan:
    support = _comparable("distribution", arms, baseline_id)
    measured = {arm_id: arms[arm_id].support.alternatives for arm_id in TierPlan(support).arms}
    listed = {arm_id: alternatives for arm_id, alternatives in measured.items() if alternatives is not None}
    if not listed:
        return TierPlan(support)
    poorest = min(listed, key=listed.__getitem__)
    reason = (
        f"only the {listed[poorest]} likeliest tokens are compared, all that {poorest} lists: KL is a lower bound over "
        "them, called kl_topk"
    )
    return TierPlan(_held_to(support, reason), listed[poorest])


def plan_likelihood(arms: Mapping[str, QualityModel], baseline_id: str) -> TierPlan:
    return TierPlan(_comparable("likelihood", arms, baseline_id))


def plan_answers(arms: Mapping[str, QualityModel], baseline_id: str) -> TierPlan:
    """Where one arm takes messages alone, all are given messages: unlike prompts would be compared otherwise."""
    support = _comparable("answers", arms, baseline_id)
    poorest = next((arm_id for arm_id, found in support.items() if found.status == "partial"), None)
    if poorest is None:
        return TierPlan(support)
    return TierPlan(_held_to(support, f"prompts go as messages, all that {poorest} takes"))


def _comparable(tier: QualityTier, arms: Mapping[str, QualityModel], baseline_id: str) -> dict[str, TierSupport]:
    """Each arm's own support; nothing can be measured on any arm without the baseline."""
    baseline = _of(arms[baseline_id].support, tier)
    if baseline.status != "not_measurable":
        return {arm_id: _of(model.support, tier) for arm_id, model in arms.items()}
    of_others = not_measurable(f"the baseline: {baseline.reason}")
    return {arm_id: baseline if arm_id == baseline_id else of_others for arm_id in arms}


def _held_to(support: Mapping[str, TierSupport], reason: str) -> dict[str, TierSupport]:
    return {arm_id: partial(reason) if found.status == "exact" else found for arm_id, found in support.items()}


def _of(support: ArmSupport, tier: QualityTier) -> TierSupport:
    found: TierSupport = getattr(support, tier)
    return found
