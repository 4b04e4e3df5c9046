"""Which pairs a person should look at first."""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher

from quantgate.judging.answer_pairs import AnswerPair
from quantgate.judging.pair_verdicts import JudgedPair


def _orders_disagree(judged: JudgedPair) -> bool:
    """The judge changed its mind with the order: nobody knows yet which answer is better."""
    return judged.orders_disagree


def _undecided(judged: JudgedPair) -> bool:
    """The judge brought no verdict."""
    return judged.preferred is None


def _lost(judged: JudgedPair) -> bool:
    """The judge says that the candidate lost what the baseline had: these pairs stop a build."""
    return judged.preferred == "baseline"


_GROUPS: tuple[Callable[[JudgedPair], bool], ...] = (_orders_disagree, _undecided, _lost)
"""Most urgent first; what is in none of them comes last."""


def by_priority(pairs: list[AnswerPair], judged: dict[tuple[str, str, int], JudgedPair]) -> list[AnswerPair]:
    """By group, and inside one those that differ most first."""
    return sorted(pairs, key=lambda pair: (_group(judged.get(pair.key)), -difference(pair), pair.key))


def difference(pair: AnswerPair) -> float:
    """Share of words that the answers do not have in common, 0 to 1, wherever the words stand."""
    return 1 - SequenceMatcher(None, pair.baseline.split(), pair.other.split(), autojunk=False).quick_ratio()


def _group(judged: JudgedPair | None) -> int:
    if judged is None:
        return len(_GROUPS)
    return next((number for number, belongs in enumerate(_GROUPS) if belongs(judged)), len(_GROUPS))
