"""The flip ledger: every item that one of baseline and candidate got right and the other wrong, side by side."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate.report.run_view import ArmView, RunView
from quantgate.report.sections.task_quality import CORRECTNESS, Item, solved_items
from quantgate.report.untrusted import Excerpt, excerpt

MOST_FLIPS_PER_ARM = 60
MOST_CHARACTERS = 1500


@dataclass(frozen=True)
class Flip:
    arm_id: str
    task: str
    item_id: str
    kind: str
    lost: bool
    """True where the candidate lost what the baseline had right."""
    expected: Excerpt | None
    baseline: Excerpt | None
    candidate: Excerpt | None
    baseline_detail: Excerpt | None
    candidate_detail: Excerpt | None


@dataclass(frozen=True)
class ArmFlips:
    arm_id: str
    shown: list[Flip]
    lost: int
    won: int
    left_out: int


def flip_ledger(view: RunView) -> list[ArmFlips]:
    """Losses first; at most `MOST_FLIPS_PER_ARM` per arm are shown and the rest is counted."""
    if view.baseline is None:
        return []
    baseline = solved_items(view.baseline)
    return [_flips_of(arm, baseline) for arm in view.candidates] if baseline else []


def _flips_of(arm: ArmView, baseline: dict[tuple[str, str, str], Item]) -> ArmFlips:
    flips = [
        _flip(arm.arm_id, baseline[key], item)
        for key, item in sorted(solved_items(arm).items())
        if key in baseline and baseline[key].right != item.right
    ]
    flips.sort(key=lambda flip: not flip.lost)
    lost = sum(flip.lost for flip in flips)
    shown = flips[:MOST_FLIPS_PER_ARM]
    return ArmFlips(arm.arm_id, shown, lost, len(flips) - lost, len(flips) - len(shown))


def _flip(arm_id: str, baseline: Item, candidate: Item) -> Flip:
    return Flip(
        arm_id=arm_id,
        task=baseline.task,
        item_id=baseline.item_id,
        kind=CORRECTNESS[baseline.metric],
        lost=baseline.right,
        expected=excerpt(baseline.expected or candidate.expected, MOST_CHARACTERS),
        baseline=excerpt(baseline.output, MOST_CHARACTERS),
        candidate=excerpt(candidate.output, MOST_CHARACTERS),
        baseline_detail=excerpt(baseline.detail, MOST_CHARACTERS),
        candidate_detail=excerpt(candidate.detail, MOST_CHARACTERS),
    )
