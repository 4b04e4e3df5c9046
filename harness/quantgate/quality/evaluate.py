"""The quality phase of a run: every tier over every arm, in batches that stay paired when the run is cut short."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from quantgate.capabilities.tier_support import TierSupport, not_measurable
from quantgate.quality.distribution import AnswerSequence
from quantgate.quality.quality_model import QualityModel
from quantgate.quality.rows import QualityRow
from quantgate.quality.sequence_batch import ComparisonLevel, SequenceBatch
from quantgate.quality.tally import Tally
from quantgate.quality.task_batch import TaskBatch
from quantgate.quality.task_evaluation import encode_item
from quantgate.quality.task_item import Task
from quantgate.quality.tier_plan import TierPlan, plan_answers, plan_distribution, plan_likelihood
from quantgate.store.tier_status import QualityTier, TierStatus

Order = Literal["items", "arms"]

_NO_SEQUENCES = "the replay kept no answer of the baseline whose token ids are known"


@dataclass(frozen=True, slots=True)
class QualityProgress:
    """How far the phase is; `done_tokens` of `total_tokens` is work, so time left follows from it."""

    stage: str
    """"distribution", or the name of the task at work."""
    done_tokens: int
    total_tokens: int


def evaluate(
    arms: Mapping[str, QualityModel],
    baseline_id: str,
    *,
    sequences: Sequence[AnswerSequence] = (),
    tasks: Sequence[Task] = (),
    tiers: Collection[QualityTier] | None = None,
    order: Order = "items",
    before_arm: Callable[[str], None] | None = None,
    batch_items: int = 16,
    on_progress: Callable[[QualityProgress], None] | None = None,
) -> Evaluation:
    """Yields the rows of a few sequences, or of a few items, for all arms at a time; `statuses` tells what they are.

    The A/A arm is one of `arms` (see `RepeatedBaseline`). tiers: what the run asks for, so that a tier for which there
    is nothing to measure has its status too (None: what `sequences` and `tasks` need).

    order "items": arms are innermost, so that whatever has been yielded when the caller stops holds the same items for
    every arm. order "arms", for arms that cannot be up together: one arm after the other, the baseline first; the rows
    are yielded once the last has ended, or once one has failed, for those that had ended by then. Both orders yield the
    same rows. In the second, the baseline's scores stay in memory: positions x vocabulary x 4 bytes up to 2 GiB, beyond
    that the 1,024 likeliest tokens of each position, which the statuses then say.

    before_arm: called with an arm's id before each stretch of work on that arm. Raises ValueError where the baseline is
    none of the arms; what `before_arm` or an arm raises ends the evaluation.
    """
    if baseline_id not in arms:
        raise ValueError(f"The baseline {baseline_id!r} is not among the arms {', '.join(arms)}.")
    return Evaluation(
        arms,
        baseline_id,
        sequences,
        tasks,
        asked=tiers if tiers is not None else _needed(sequences, tasks),
        order=order,
        before_arm=before_arm or _nothing_to_do,
        batch_items=batch_items,
        on_progress=on_progress or _keep_quiet,
    )


class Evaluation(Iterator[list[QualityRow]]):
    """Batches of rows, each whole for all arms, and how far each tier was measured."""

    def __init__(
        self,
        arms: Mapping[str, QualityModel],
        baseline_id: str,
        sequences: Sequence[AnswerSequence],
        tasks: Sequence[Task],
        *,
        asked: Collection[QualityTier],
        order: Order,
        before_arm: Callable[[str], None],
        batch_items: int,
        on_progress: Callable[[QualityProgress], None],
    ) -> None:
        self._arms = arms
        # The baseline first: the other arms are compared with what it said.
        self._turns = sorted(arms, key=lambda arm_id: arm_id != baseline_id)
        self._asked = asked
        self._has_sequences = bool(sequences)
        self._tally = Tally()
        self._plans: dict[QualityTier, TierPlan] = {
            "distribution": plan_distribution(arms, baseline_id),
            "likelihood": plan_likelihood(arms, baseline_id),
            "answers": plan_answers(arms, baseline_id),
        }
        self._level = ComparisonLevel(self._plans["distribution"].alternatives)
        if order == "arms":
            self._level.held_positions = sum(len(sequence.output_ids) for sequence in sequences)
        self._batches: list[SequenceBatch | TaskBatch] = [
            *self._sequence_batches(sequences, baseline_id),
            *self._task_batches(tasks, baseline_id, batch_items),
        ]
        self._total = sum(batch.arm_tokens(arm_id) for batch in self._batches for arm_id in arms)
        self._done = 0
        self._before_arm, self._on_progress = before_arm, on_progress
        self._rows = self._by_arms() if order == "arms" else self._by_items()

    def __next__(self) -> list[QualityRow]:
        return next(self._rows)

    @property
    def statuses(self) -> list[TierStatus]:
        """One entry for each tier that was asked for and each arm, true of the rows yielded so far."""
        return [
            self._tally.status(tier, arm_id, self._support(tier, arm_id))
            for tier, plan in self._plans.items()
            if tier in self._asked
            for arm_id in plan.support
        ]

    def _support(self, tier: QualityTier, arm_id: str) -> TierSupport:
        planned = self._plans[tier].support[arm_id]
        if tier != "distribution":
            return planned
        if planned.status != "not_measurable" and not self._has_sequences:
            return not_measurable(_NO_SEQUENCES)
        return self._level.support(planned)

    def _sequence_batches(self, sequences: Sequence[AnswerSequence], baseline_id: str) -> Iterator[SequenceBatch]:
        measured = self._plans["distribution"].arms
        size = max((self._arms[arm_id].concurrency for arm_id in measured), default=1)
        for start in range(0, len(sequences) if measured else 0, size):
            yield SequenceBatch(sequences[start : start + size], baseline_id, measured, self._level)

    def _task_batches(self, tasks: Sequence[Task], baseline_id: str, batch_items: int) -> Iterator[TaskBatch]:
        tokenizer = self._arms[baseline_id].tokenizer
        for task in tasks:
            for start in range(0, len(task.items), batch_items):
                items = [encode_item(tokenizer, task, item) for item in task.items[start : start + batch_items]]
                yield TaskBatch(items, self._plans["answers"], self._plans["likelihood"])

    def _by_items(self) -> Iterator[list[QualityRow]]:
        for batch in self._batches:
            for arm_id in self._turns:
                if batch.arm_tokens(arm_id):
                    self._before_arm(arm_id)
                    self._measure(batch, arm_id)
            yield batch.take_rows(list(self._arms), self._tally)
            self._report(batch)

    def _by_arms(self) -> Iterator[list[QualityRow]]:
        failure: Exception | None = None
        ended: list[str] = []
        for arm_id in self._turns:
            try:
                self._before_arm(arm_id)
                for batch in self._batches:
                    self._measure(batch, arm_id)
                    self._report(batch)
            except Exception as error:  # noqa: BLE001 - whatever ends an arm, the rows of those before it are kept
                failure = error
                break
            ended.append(arm_id)
        for batch in self._batches:
            yield batch.take_rows([arm_id for arm_id in self._arms if arm_id in ended], self._tally)
        if failure is not None:
            raise failure

    def _measure(self, batch: SequenceBatch | TaskBatch, arm_id: str) -> None:
        batch.measure(arm_id, self._arms[arm_id])
        self._done += batch.arm_tokens(arm_id)

    def _report(self, batch: SequenceBatch | TaskBatch) -> None:
        self._on_progress(QualityProgress(batch.stage, self._done, self._total))


def _needed(sequences: Sequence[AnswerSequence], tasks: Sequence[Task]) -> set[QualityTier]:
    needed: set[QualityTier] = {"distribution"} if sequences else set()
    return needed | {"likelihood", "answers"} if tasks else needed


def _keep_quiet(_: QualityProgress) -> None:
    """For callers that show no progress."""


def _nothing_to_do(_: str) -> None:
    """For arms that are up all the time."""
