"""Puts task items to one arm, and writes down what came of it: an answer, judged, and the likelihood twin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quantgate.quality.behaviour import behaviour_metrics
from quantgate.quality.likelihood import Censored, TwinResult, rank_options
from quantgate.quality.prompting import continuation_token_ids, prompt_token_ids
from quantgate.quality.quality_model import (
    ChatPrompt,
    Continuations,
    GeneratedAnswer,
    ItemFailure,
    QualityModel,
    Tokenizer,
)
from quantgate.quality.rows import QualityRow, Tier, detail_json
from quantgate.quality.task_item import Answer, Task, TaskItem

_CHARACTERS_A_TOKEN = 4
"""A rough figure for progress alone, where nobody knows the tokens."""

Twin = TwinResult | Censored | ItemFailure


@dataclass(frozen=True, slots=True)
class EncodedItem:
    """An item as token ids; arms of one model share a tokenizer, so it is encoded once for all of them.

    `twin` is None and the prompt's token ids are empty where there is no tokenizer.
    """

    task: Task
    item: TaskItem
    prompt: ChatPrompt
    twin: Continuations | None

    @property
    def answer_tokens(self) -> int:
        """Tokens that one arm computes for an answer at most; the unit of progress."""
        prompt = self.prompt
        characters = sum(len(message.content) for message in prompt.messages)
        return (len(prompt.token_ids) or characters // _CHARACTERS_A_TOKEN) + self.task.max_tokens

    @property
    def twin_tokens(self) -> int:
        return len(self.twin.prompt_ids) + sum(map(len, self.twin.options)) if self.twin else 0


def encode_item(tokenizer: Tokenizer | None, task: Task, item: TaskItem) -> EncodedItem:
    messages = item.messages()
    if tokenizer is None:
        return EncodedItem(task, item, ChatPrompt(messages), twin=None)
    options = (item.twin_gold, *item.wrong_answers)
    return EncodedItem(
        task=task,
        item=item,
        prompt=ChatPrompt(messages, tuple(prompt_token_ids(tokenizer, messages))),
        twin=Continuations(
            tuple(prompt_token_ids(tokenizer, item.twin_messages())),
            tuple(tuple(continuation_token_ids(tokenizer, text)) for text in options),
        ),
    )


def answer_items(
    model: QualityModel, encoded: Sequence[EncodedItem], *, as_messages: bool
) -> list[GeneratedAnswer | ItemFailure]:
    """The arm's answers to items of one task, generated in one batch."""
    prompts = [ChatPrompt(entry.prompt.messages) if as_messages else entry.prompt for entry in encoded]
    return model.generate(prompts, encoded[0].task.max_tokens)


def rank_items(model: QualityModel, encoded: Sequence[EncodedItem]) -> list[Twin]:
    """How the arm ranks each item's options."""
    questions = [entry.twin for entry in encoded if entry.twin is not None]
    return [
        scored if isinstance(scored, ItemFailure) else rank_options(scored, question.options)
        for question, scored in zip(questions, model.score(questions), strict=True)
    ]


def answer_rows(arm_id: str, entry: EncodedItem, generated: GeneratedAnswer) -> Iterator[QualityRow]:
    answer = Answer(generated.text.strip(), truncated=generated.truncated)
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
    habits = behaviour_metrics(answer, generated.tokens)
    habits |= {name: float(seen) for name, seen in checked.behaviour.items()}
    for name, value in habits.items():
        yield _row(arm_id, "behaviour", entry, name, value)


def twin_rows(arm_id: str, entry: EncodedItem, twin: TwinResult) -> Iterator[QualityRow]:
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
