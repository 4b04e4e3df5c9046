"""What the judgements of a run say, in figures: for the command's output and for the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quantgate.judging.budget import Spending
from quantgate.judging.calibration import Calibration, baseline_wins, calibrate, net_preference, position_bias
from quantgate.judging.net_share import NetShare, WinShare
from quantgate.judging.pair_verdicts import JudgedPair, judged_pairs, pairs_of_arm
from quantgate.judging.rows import OVERBILLED, spending
from quantgate.store.run_folder import LoadedRun


@dataclass(frozen=True, slots=True)
class ArmPreference:
    """One arm against the baseline. undecided: pairs without a verdict.

    identical and by_people: how many of the verdicts needed no judge, or came from a person. net: over all pairs with a
    verdict; baseline_wins: over those that are no tie; None where there is no such pair.
    """

    arm_id: str
    role: str
    prefer_baseline: int
    prefer_arm: int
    ties: int
    undecided: int
    identical: int
    by_people: int
    net: NetShare | None
    baseline_wins: WinShare | None

    @property
    def pairs(self) -> int:
        return self.prefer_baseline + self.prefer_arm + self.ties + self.undecided


@dataclass(frozen=True, slots=True)
class JudgingSummary:
    """judges: names of the models that judged. unparsable: answers of theirs that were no verdict.

    overbilled: calls for which the server states more tokens than they were allowed to use.
    """

    judges: tuple[str, ...]
    arms: tuple[ArmPreference, ...]
    position: WinShare | None
    calibration: Calibration | None
    spent: Spending
    unparsable: int
    overbilled: int
    failures: Counter[str]


def summarize(run: LoadedRun, confidence: float) -> JudgingSummary | None:
    """None where nothing was judged."""
    if not run.judgements.num_rows:
        return None
    pairs = judged_pairs(run.judgements)
    rows = [row for row in run.judgements.to_pylist() if row["source"] == "judge"]
    by_arm = [(arm, pairs_of_arm(pairs, arm.arm_id)) for arm in run.manifest.arms]
    aa = [pair for arm, of_arm in by_arm if arm.role == "aa" for pair in of_arm]
    return JudgingSummary(
        judges=tuple(sorted({row["judge"] for row in rows})),
        arms=tuple(_arm(arm.arm_id, arm.role, of_arm, confidence) for arm, of_arm in by_arm if of_arm),
        position=position_bias(pairs, confidence),
        calibration=calibrate(aa, confidence),
        spent=spending(rows),
        unparsable=sum(row["choice"] == "unparsable" for row in rows),
        overbilled=sum(row["error_kind"] == OVERBILLED for row in rows),
        failures=Counter(row["error_kind"] for row in rows if row["choice"] == "failed"),
    )


def _arm(arm_id: str, role: str, pairs: list[JudgedPair], confidence: float) -> ArmPreference:
    preferred = Counter(pair.preferred for pair in pairs)
    return ArmPreference(
        arm_id=arm_id,
        role=role,
        prefer_baseline=preferred["baseline"],
        prefer_arm=preferred["other"],
        ties=preferred["tie"],
        undecided=preferred[None],
        identical=sum(pair.source == "identical" for pair in pairs),
        by_people=sum(pair.source == "human" and pair.preferred is not None for pair in pairs),
        net=net_preference(pairs, confidence),
        baseline_wins=baseline_wins(pairs, confidence),
    )
