"""The arms of a run, and the baseline's twin that measures the run's own noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quantgate.replay.load_processes.messages import TargetRecipe
from quantgate.targets.base import ArmDescription, ArmRole, Target


@dataclass(frozen=True, slots=True)
class ReplayArm:
    """One arm of a run. Two arms may share a target: the baseline and its A/A twin do.

    recipe: makes the same target in another process; None where there can be only one of it.
    """

    arm_id: str
    role: ArmRole
    target: Target
    recipe: TargetRecipe | None = None

    @property
    def description(self) -> ArmDescription:
        return replace(self.target.description, arm_id=self.arm_id, role=self.role)


def with_aa_arm(arms: Sequence[ReplayArm]) -> tuple[ReplayArm, ...]:
    """The arms and `<baseline>-aa`, which is the baseline's own target once more."""
    baseline = next(arm for arm in arms if arm.role == "baseline")
    return (*arms, ReplayArm(f"{baseline.arm_id}-aa", "aa", baseline.target, baseline.recipe))
