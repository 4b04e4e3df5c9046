"""What a judge prefers, and what that is worth: does an answer's place sway it, does it see what is not there?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quantgate.judging.net_share import NetShare, WinShare, as_win_share, net_share
from quantgate.judging.pair_verdicts import JudgedPair, clusters_of


@dataclass(frozen=True, slots=True)
class Calibration:
    """The judge on the baseline against itself.

    preference: share of pairs that prefer the baseline, less the share that prefers its repetition. identical: pairs
    whose answers were the same, ties for which the judge was not asked.
    """

    preference: NetShare
    identical: int

    @property
    def asked(self) -> int:
        return self.preference.n - self.identical

    @property
    def fit(self) -> bool:
        """Whether the interval holds 0: a judge that prefers one of two answers of the same build is of no use."""
        lower, upper = self.preference.interval
        return lower <= 0 <= upper


def position_bias(pairs: list[JudgedPair], confidence: float) -> WinShare | None:
    """Of the judge's choices between two answers, the share that went to the one shown first; 0.5 is no bias.

    Over the pairs for which it chose an answer in both orders; None where there is none. A pair that is judged alike
    in both orders gives one choice to each place; another gives both choices to one place. With F pairs that went to
    the first place twice, S to the second, and n pairs in all, the share is (1 + (F - S) / n) / 2.
    """
    chosen = [pair for pair in pairs if set(pair.by_order) <= {"baseline", "other"}]
    first = np.array([pair.by_order == ("baseline", "other") for pair in chosen], dtype=np.bool_)
    second = np.array([pair.by_order == ("other", "baseline") for pair in chosen], dtype=np.bool_)
    return as_win_share(net_share(first, second, clusters_of(chosen), confidence))


def net_preference(pairs: list[JudgedPair], confidence: float) -> NetShare | None:
    """Share of pairs that prefer the baseline's answer, less the share that prefers the other's; ties count 0.

    Pairs without a verdict are left out. None where there is no other.
    """
    decided = [pair for pair in pairs if pair.preferred is not None]
    baseline = np.array([pair.preferred == "baseline" for pair in decided], dtype=np.bool_)
    other = np.array([pair.preferred == "other" for pair in decided], dtype=np.bool_)
    return net_share(baseline, other, clusters_of(decided), confidence)


def baseline_wins(pairs: list[JudgedPair], confidence: float) -> WinShare | None:
    """Of the pairs that are no tie, the share that prefers the baseline's answer."""
    return as_win_share(net_preference([pair for pair in pairs if pair.preferred != "tie"], confidence))


def calibrate(aa_pairs: list[JudgedPair], confidence: float) -> Calibration | None:
    """From the pairs of the baseline and its A/A arm; None where the judge gave no verdict on any."""
    judged = [pair for pair in aa_pairs if pair.source != "human"]
    preference = net_preference(judged, confidence)
    if preference is None:
        return None
    return Calibration(preference, identical=sum(pair.source == "identical" for pair in judged))
