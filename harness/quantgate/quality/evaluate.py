"""The quality phase of a run: every tier over every arm, in batches that stay paired when the run is cut short."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quantgate.quality.distribution import AnswerSequence, distribution_rows
from quantgate.quality.quality_model import QualityModel
from quantgate.quality.rows import QualityRow
from quantgate.quality.task_evaluation import EncodedItem, encode_item, evaluate_items
from quantgate.quality.task_item import Task


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
    batch_items: int = 16,
    on_progress: Callable[[QualityProgress], None] | None = None,
) -> Iterator[list[QualityRow]]:
    """Yield the rows of one sequence, or of a few items, for all arms at a time.

    Arms are innermost: whatever has been yielded when the caller stops holds the same items for every arm, and arms
    meet the machine in the same state. The A/A arm is one of `arms` (see `RepeatedBaseline`).
    """
    if baseline_id not in arms:
        raise ValueError(f"The baseline {baseline_id!r} is not among the arms {', '.join(arms)}.")
    tokenizer = arms[baseline_id].tokenizer
    batches = [
        [encode_item(tokenizer, task, item) for item in task.items[start : start + batch_items]]
        for task in tasks
        for start in range(0, len(task.items), batch_items)
    ]
    sequence_tokens = [len(sequence.forced_ids) * len(arms) for sequence in sequences]
    batch_tokens = [sum(entry.tokens for entry in batch) * len(arms) for batch in batches]
    total = sum(sequence_tokens) + sum(batch_tokens)

    report = on_progress or _keep_quiet
    done = 0
    for rows, tokens in zip(distribution_rows(arms, baseline_id, sequences), sequence_tokens, strict=True):
        done += tokens
        yield rows
        report(QualityProgress("distribution", done, total))
    for batch, tokens in zip(batches, batch_tokens, strict=True):
        yield _batch_rows(arms, batch)
        done += tokens
        report(QualityProgress(batch[0].task.name, done, total))


def _batch_rows(arms: Mapping[str, QualityModel], batch: Sequence[EncodedItem]) -> list[QualityRow]:
    return [row for arm_id, model in arms.items() for row in evaluate_items(arm_id, model, batch)]


def _keep_quiet(_: QualityProgress) -> None:
    """For callers that show no progress."""
