"""Answers without a checker: whom the judge and the reviewers prefer, what the judge is worth, and examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quantgate.judging.finding_words import calibration_words, position_words
from quantgate.judging.net_share import NetShare, WinShare
from quantgate.judging.pair_verdicts import JudgedPair, Order, judged_pairs, pairs_of_arm
from quantgate.judging.summary import ArmPreference, JudgingSummary, summarize
from quantgate.report.estimates import CONFIDENCE
from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, count, in_unit, limits, percent
from quantgate.report.run_view import ArmView, RunView
from quantgate.report.untrusted import Excerpt, excerpt
from quantgate_engine.counted import counted

MOST_EXAMPLES_PER_ARM = 6
MOST_CHARACTERS = 1200

_VERDICTS = {"baseline": "baseline preferred", "other": "arm preferred", "tie": "tie"}
_URGENCY = {"baseline": 0, "other": 1, "tie": 2}
_ORDER_WORDS: dict[Order, str] = {
    "baseline_first": "answer 1 is the baseline's",
    "baseline_second": "answer 2 is the baseline's",
}


@dataclass(frozen=True)
class JudgedReason:
    """Why, and how the answers are numbered in it."""

    order: str
    why: Excerpt | None


@dataclass(frozen=True)
class JudgedExample:
    request_id: str
    verdict: str
    by: str
    prompt: Excerpt | None
    baseline: Excerpt | None
    candidate: Excerpt | None
    reasons: list[JudgedReason]


@dataclass(frozen=True)
class ArmExamples:
    arm_id: str
    shown: list[JudgedExample]


@dataclass(frozen=True)
class JudgedAnswers:
    """`judge`, `position`, `calibration` and `spent` are sentences; `judge` is None where only people judged."""

    preferences: Table
    judge: str | None
    position: str
    calibration: str
    spent: str
    examples: list[ArmExamples]


def judged_answers(view: RunView) -> JudgedAnswers | None:
    """None where nothing was judged."""
    summary = summarize(view.run, CONFIDENCE)
    if summary is None:
        return None
    pairs = judged_pairs(view.run.judgements)
    return JudgedAnswers(
        preferences=_preferences(summary),
        judge=", ".join(summary.judges) or None,
        position=f"Position: {position_words(summary.position)}.",
        calibration=f"Calibration: {calibration_words(summary.calibration)}.",
        spent=_spent(summary),
        examples=[_examples(view, arm, pairs_of_arm(pairs, arm.arm_id)) for arm in view.candidates],
    )


def _preferences(summary: JudgingSummary) -> Table:
    headers = ["arm", "pairs", "baseline preferred", "arm preferred", "ties", "of them identical", "no verdict",
               "by people", "baseline's share without ties", "loss"]  # fmt: skip
    return Table(headers, [_row(arm) for arm in summary.arms])


def _row(arm: ArmPreference) -> list[str]:
    numbers = (arm.pairs, arm.prefer_baseline, arm.prefer_arm, arm.ties, arm.identical, arm.undecided, arm.by_people)
    name = f"{arm.arm_id} (baseline again)" if arm.role == "aa" else arm.arm_id
    return [name, *map(count, numbers), _interval(arm.baseline_wins, percent), _interval(arm.net, _points)]


def _interval(share: NetShare | WinShare | None, write: Callable[[float | None], str]) -> str:
    return NOTHING if share is None else f"{write(share[0])} {limits(*share.interval, write)}"


def _points(value: float | None) -> str:
    return in_unit(value, "pp")


def _spent(summary: JudgingSummary) -> str:
    spent, failures = summary.spent, summary.failures
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(failures.items()))
    return (
        f"Spent: {counted(spent.requests, 'call')}, {spent.prompt_tokens:,} prompt and "
        f"{counted(spent.completion_tokens, 'reply token')}; "
        f"{counted(summary.unparsable, 'reply', 'replies')} could not be read, "
        f"{counted(failures.total(), 'call')} failed{f' ({kinds})' if kinds else ''}."
    )


def _examples(view: RunView, arm: ArmView, pairs: list[JudgedPair]) -> ArmExamples:
    """Pairs that the baseline won first: they are what a reader who must decide wants to see."""
    told = [pair for pair in pairs if pair.preferred is not None and pair.source != "identical"]
    told.sort(key=lambda pair: (_URGENCY[pair.preferred or "tie"], pair.key))
    chosen = told[:MOST_EXAMPLES_PER_ARM]
    wanted = {(pair.request_id, pair.pass_index) for pair in chosen}
    old = _texts(view.baseline, wanted) if view.baseline else {}
    new = _texts(arm, wanted)
    return ArmExamples(arm.arm_id, [_example(pair, old, new) for pair in chosen])


_Texts = dict[tuple[str, int], tuple[str | None, str | None]]
"""(request, pass) -> prompt and answer"""


def _texts(arm: ArmView, wanted: set[tuple[str, int]]) -> _Texts:
    names = ["request_id", "pass_index", "prompt_text", "output_text"]
    rows = arm.requests.select(names).to_pylist()
    return {
        (row["request_id"], row["pass_index"]): (row["prompt_text"], row["output_text"])
        for row in rows
        if (row["request_id"], row["pass_index"]) in wanted
    }


def _example(pair: JudgedPair, old: _Texts, new: _Texts) -> JudgedExample:
    key = (pair.request_id, pair.pass_index)
    prompt, baseline = old.get(key, (None, None))
    candidate = new.get(key, (None, None))[1]
    reasons = [JudgedReason(_ORDER_WORDS[order], excerpt(why, MOST_CHARACTERS)) for order, why in pair.reasons]
    disagree = ", the orders disagree" if pair.source == "judge" and pair.orders_disagree else ""
    return JudgedExample(
        request_id=pair.request_id,
        verdict=_VERDICTS[pair.preferred or "tie"] + disagree,
        by="a person" if pair.source == "human" else "the judge",
        prompt=excerpt(prompt, MOST_CHARACTERS),
        baseline=excerpt(baseline, MOST_CHARACTERS),
        candidate=excerpt(candidate, MOST_CHARACTERS),
        reasons=reasons,
    )
