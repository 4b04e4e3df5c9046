"""Puts one task item to one arm: a generated answer, judged, and its likelihood twin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quantgate.quality.behaviour import behaviour_metrics
from quantgate.quality.likelihood import rank_options
from quantgate.quality.prompting import continuation_token_ids, prompt_token_ids
from quantgate.quality.quality_model import QualityModel, Tokenizer
from quantgate.quality.rows import QualityRow, Tier, detail_json
from quantgate.quality.task_item import Answer, Task, TaskItem


@dataclass(frozen=True, slots=True)
class EncodedItem:
    """An item as token ids; arms of one model share a tokenizer, so it is encoded once for all of them."""

    task: Task
    item: TaskItem
    prompt_ids: list[int]
    twin_prompt_ids: list[int]
    gold_ids: list[int]
    distractor_ids: list[list[int]]

    @property
    def tokens(self) -> int:
        """Tokens that one arm computes for this item at most; the unit of progress."""
        twin = len(self.twin_prompt_ids) + sum(len(option) for option in (self.gold_ids, *self.distractor_ids))
        return twin + len(self.prompt_ids) + self.task.max_tokens


def encode_item(tokenizer: Tokenizer, task: Task, item: TaskItem) -> EncodedItem:
    return EncodedItem(
        task=task,
        item=item,
        prompt_ids=prompt_token_ids(tokenizer, item.messages()),
        twin_prompt_ids=prompt_token_ids(tokenizer, item.twin_messages()),
        gold_ids=continuation_token_ids(tokenizer, item.twin_gold),
        distractor_ids=[continuation_token_ids(tokenizer, text) for text in item.wrong_answers],
    )


def evaluate_items(arm_id: str, model: QualityModel, encoded: Sequence[EncodedItem]) -> list[QualityRow]:
    """All rows of one arm for items of one task; their answers are generated in one batch."""
    max_tokens = encoded[0].task.max_tokens
    outputs = model.generate([entry.prompt_ids for entry in encoded], max_tokens)
    rows: list[QualityRow] = []
    for entry, output in zip(encoded, outputs, strict=True):
        text = model.tokenizer.decode(output, skip_special_tokens=True)
        answer = Answer(text.strip(), truncated=len(output) >= max_tokens)
        rows.extend(_generation_rows(arm_id, entry, answer, len(output)))
        rows.extend(_twin_rows(arm_id, entry, model))
    return rows


def _generation_rows(arm_id: str, entry: EncodedItem, answer: Answer, answer_tokens: int) -> Iterator[QualityRow]:
    checked = entry.item.check(answer)
    yield _row(
        arm_id,
        "task",
        entry,
        "correct",
        float(checked.correct),
        floor=entry.item.generation_floor,
        output_text=answer.text,
        expected_text=entry.item.gold,
        detail=detail_json({"truncated": answer.truncated, **checked.parts, **checked.behaviour}),
    )
    for name, reached in checked.parts.items():
        yield _row(arm_id, "task", entry, name, float(reached))
    habits = behaviour_metrics(answer, answer_tokens) | {name: float(seen) for name, seen in checked.behaviour.items()}
    for name, value in habits.items():
        yield _row(arm_id, "behaviour", entry, name, value)


def _twin_rows(arm_id: str, entry: EncodedItem, model: QualityModel) -> Iterator[QualityRow]:
    twin = rank_options(model, entry.twin_prompt_ids, entry.gold_ids, entry.distractor_ids)
    best = max(range(len(twin.distractor_logprobs)), key=twin.distractor_logprobs.__getitem__)
    preferred = entry.item.twin_gold if twin.gold_preferred else entry.item.wrong_answers[best]
    yield _row(
        arm_id,
        "task",
        entry,
        "gold_preferred",
        float(twin.gold_preferred),
        floor=entry.item.twin_floor,
        output_text=preferred,
        expected_text=entry.item.twin_gold,
        detail=detail_json({"gold": twin.gold_logprob, "distractors": list(twin.distractor_logprobs)}),
    )
    yield _row(arm_id, "task", entry, "gold_logprob", twin.gold_logprob)
    yield _row(arm_id, "task", entry, "gold_margin", twin.gold_margin)


def _row(
    arm_id: str,
    tier: Tier,
    entry: EncodedItem,
    metric: str,
    value: float,
    *,
    floor: float | None = None,
    output_text: str | None = None,
    expected_text: str | None = None,
    detail: str | None = None,
) -> QualityRow:
    return QualityRow(
        arm_id=arm_id,
        tier=tier,
        task=entry.task.name,
        item_id=entry.item.id,
        cluster_id=entry.item.cluster or entry.item.id,
        metric=metric,
        value=value,
        floor=floor,
        output_text=output_text,
        expected_text=expected_text,
        detail=detail,
    )
