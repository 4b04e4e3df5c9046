"""What judging found, in words."""

from __future__ import annotations

from quantgate.judging.calibration import Calibration
from quantgate.judging.net_share import NetShare, WinShare
from quantgate.judging.summary import ArmPreference
from quantgate_engine.counted import counted, plural


def arm_line(arm: ArmPreference) -> str:
    role = " (baseline again)" if arm.role == "aa" else ""
    people = f", {arm.by_people:,} decided by people" if arm.by_people else ""
    return (
        f"{arm.arm_id}{role}: {counted(arm.pairs, 'pair')}, {arm.prefer_baseline:,} "
        f"{plural(arm.prefer_baseline, 'prefers', 'prefer')} the baseline, {arm.prefer_arm:,} "
        f"{plural(arm.prefer_arm, 'prefers', 'prefer')} {arm.arm_id}, {counted(arm.ties, 'tie')} "
        f"({arm.identical:,} identical), {arm.undecided:,} without a verdict{people}; loss {_net(arm.net)}."
    )


def position_words(position: WinShare | None) -> str:
    """Without a full stop, for the middle of a sentence too."""
    if position is None:
        return "no pair was decided in both orders, so that a bias cannot be told"
    lower, upper = position.interval
    reading = "no bias shown" if lower <= 0.5 <= upper else "a bias; pairs that it decides count as ties"
    return (
        f"the first answer won {position.share:.1%} of the choices (interval {lower:.1%} to {upper:.1%}, "
        f"{counted(position.n, 'pair')}): {reading}"
    )


def calibration_words(calibration: Calibration | None) -> str:
    """Without a full stop, for the middle of a sentence too."""
    if calibration is None:
        return "none, since no pair of the baseline and its repetition (A/A) was judged"
    if calibration.asked == 0:
        return (
            f"all {calibration.identical:,} pairs of the baseline and its repetition (A/A) are identical, so that the "
            "judge was not put to the test"
        )
    reading = (
        "no preference, the judge is fit"
        if calibration.fit
        else "a preference where there is nothing to prefer, the judge is unfit and its verdicts are uninformative"
    )
    return (
        f"on the baseline and its repetition (A/A) the net preference is {_net(calibration.preference)}, "
        f"{calibration.identical:,} of them identical: {reading}"
    )


def _net(net: NetShare | None) -> str:
    if net is None:
        return "not measured"
    lower, upper = net.interval
    return f"{100 * net.value:+.1f} pp (interval {100 * lower:+.1f} to {100 * upper:+.1f} pp, {counted(net.n, 'pair')})"
