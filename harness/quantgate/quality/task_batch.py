"""A few items of one task, put to every arm."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.quality.likelihood import Censored, TwinResult
from quantgate.quality.quality_model import GeneratedAnswer, ItemFailure, QualityModel
from quantgate.quality.rows import QualityRow
from quantgate.quality.tally import Tally
from quantgate.quality.task_evaluation import (
    EncodedItem,
    Twin,
    answer_items,
    answer_rows,
    rank_items,
    twin_rows,
)
from quantgate.quality.tier_plan import TierPlan


class TaskBatch:
    """Keeps each arm's answers and rankings until all arms have been asked."""

    def __init__(self, items: Sequence[EncodedItem], answers: TierPlan, likelihood: TierPlan) -> None:
        self.stage = items[0].task.name
        self._items = items
        self._answer_arms, self._twin_arms = answers.arms, likelihood.arms
        self._as_messages = any(answers.support[arm_id].status == "partial" for arm_id in answers.arms)
        self._answers: dict[str, list[GeneratedAnswer | ItemFailure]] = {}
        self._twins: dict[str, list[Twin]] = {}

    def arm_tokens(self, arm_id: str) -> int:
        """Tokens that the arm computes for this batch at most; the unit of progress."""
        answers = sum(entry.answer_tokens for entry in self._items) if arm_id in self._answer_arms else 0
        return answers + (sum(entry.twin_tokens for entry in self._items) if arm_id in self._twin_arms else 0)

    def measure(self, arm_id: str, model: QualityModel) -> None:
        if arm_id in self._answer_arms:
            self._answers[arm_id] = answer_items(model, self._items, as_messages=self._as_messages)
        if arm_id in self._twin_arms:
            self._twins[arm_id] = rank_items(model, self._items)

    def take_rows(self, arm_ids: Sequence[str], tally: Tally) -> list[QualityRow]:
        """The rows of the given arms, which have all been asked; what they were made of is forgotten."""
        told = [self._told_by_all(index, arm_ids) for index in range(len(self._items))]
        rows: list[QualityRow] = []
        for arm_id in arm_ids:
            for index, entry in enumerate(self._items):
                if arm_id in self._answers:
                    rows.extend(_answer_rows(arm_id, entry, self._answers[arm_id][index], tally))
                if arm_id in self._twins:
                    found = _twin_rows(arm_id, entry, self._twins[arm_id][index], tally)
                    rows.extend(found if told[index] else [])
        self._answers, self._twins = {}, {}
        return rows

    def _told_by_all(self, index: int, arm_ids: Sequence[str]) -> bool:
        """An item that one arm cannot rank has no likelihood value on any: the others' would pair with nothing."""
        return not any(isinstance(self._twins[arm_id][index], Censored) for arm_id in arm_ids if arm_id in self._twins)


def _answer_rows(
    arm_id: str, entry: EncodedItem, answer: GeneratedAnswer | ItemFailure, tally: Tally
) -> list[QualityRow]:
    tally.asked("answers", arm_id)
    if isinstance(answer, ItemFailure):
        tally.failed("answers", arm_id, answer.reason)
        return []
    return list(answer_rows(arm_id, entry, answer))


def _twin_rows(arm_id: str, entry: EncodedItem, twin: Twin, tally: Tally) -> list[QualityRow]:
    tally.asked("likelihood", arm_id)
    if isinstance(twin, TwinResult):
        return list(twin_rows(arm_id, entry, twin))
    if isinstance(twin, ItemFailure):
        tally.failed("likelihood", arm_id, twin.reason)
    else:
        tally.censored("likelihood", arm_id)
    return []
