"""Rule about answers that no checker can judge: do a judge, or people, prefer the baseline's answers?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from quantgate.gate.evidence import Pairing
from quantgate.gate.families.paired_binary import MARGIN_UNITS, METHOD, measure_binary
from quantgate.gate.families.rule_metric import Measurement, RuleMetric, RuleQuestion
from quantgate.gate.wording import write, write_signed
from quantgate.judging.calibration import calibrate
from quantgate.judging.pair_verdicts import JudgedPair, clusters_of, pairs_of_arm
from quantgate_engine.counted import counted, plural

_MOST_UNDECIDED = 0.1
"""Share of drawn pairs that may lack a verdict. Identical answers never lack one: leaving the others out flatters."""


def _preference(pairing: Pairing, question: RuleQuestion) -> Measurement:
    """Share of pairs that prefer the baseline's answer, less the share that prefers the candidate's; ties count 0.

    Uninformative where the judge is unfit (it prefers one of two answers of the same build) and where too many of the
    drawn pairs have no verdict.
    """
    drawn = pairs_of_arm(pairing.judged_pairs, pairing.candidate_id)
    decided = [pair for pair in drawn if pair.preferred is not None]
    if not drawn:
        return Measurement(n=0, method=METHOD)
    unfit = _unfit_judge(pairing, decided, question)
    if unfit is not None and pairing.candidate_id == pairing.noise_id:
        # No number: it is the judge's failing, not noise that could hide what people see.
        return Measurement(n=len(decided), method=METHOD, uninformative=unfit)
    prefers_baseline = np.array([pair.preferred == "baseline" for pair in decided], dtype=np.bool_)
    prefers_candidate = np.array([pair.preferred == "other" for pair in decided], dtype=np.bool_)
    measured = measure_binary(prefers_baseline, prefers_candidate, clusters_of(decided), question)
    by_people = sum(pair.source == "human" for pair in decided)
    counts = {
        "baseline_preferred": int(prefers_baseline.sum()),
        "candidate_preferred": int(prefers_candidate.sum()),
        "ties": len(decided) - int(prefers_baseline.sum()) - int(prefers_candidate.sum()),
        "decided_by_people": by_people,
    }
    return replace(
        measured,
        method=f"{measured.method}; {by_people} of {counted(len(decided), 'pair')} decided by people",
        counts=counts,
        uninformative=unfit or _missing_verdicts(len(drawn) - len(decided), len(drawn)),
    )


def _missing_verdicts(undecided: int, drawn: int) -> str | None:
    if undecided <= _MOST_UNDECIDED * drawn:
        return None
    return (
        f"{undecided} of {counted(drawn, 'pair')} {plural(undecided, 'has', 'have')} no verdict, more than "
        f"{write(_MOST_UNDECIDED, 'ratio')}; judge them again or fill in the review queue"
    )


def _unfit_judge(pairing: Pairing, decided: list[JudgedPair], question: RuleQuestion) -> str | None:
    """Why the judge's verdicts say nothing; None where they do, or where there are none."""
    if all(pair.source != "judge" for pair in decided):
        return None
    calibration = calibrate(pairs_of_arm(pairing.judged_pairs, pairing.noise_id or ""), question.confidence)
    if calibration is None or calibration.fit:
        return None
    lower, upper = calibration.preference.interval
    return (
        f"the judge prefers one of two answers of the same build (A/A: interval {write_signed(lower, 'pp')} to "
        f"{write_signed(upper, 'pp')} over {counted(calibration.preference.n, 'pair')}), so that its preferences say "
        "nothing"
    )


PREFERENCE_RULES = (
    RuleMetric(
        "preference", "judged preference for the baseline's answers", ("rate",), MARGIN_UNITS, "share", "judged pairs",
        _preference,
    ),
)  # fmt: skip
