"""The whole phase over table models: what is asked, what is recorded, and what an interruption leaves."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from tests.quality.table_model import TableModel, random_table

from quantgate.quality.distribution import AnswerSequence
from quantgate.quality.evaluate import QualityProgress, evaluate
from quantgate.quality.rows import QualityRow, quality_table
from quantgate.quality.task_item import Task
from quantgate.quality.tasks.multiple_choice import ChoiceTask
from quantgate.quality.tasks.rag import RagTask

CHOICE = ChoiceTask.model_validate(
    {
        "schema": "quantgate.task/1",
        "name": "animals",
        "kind": "multiple_choice",
        "title": "Animals",
        "licence": "Apache-2.0",
        "max_tokens": 12,
        "items": [
            {"id": "a-1", "question": "Who barks?", "answer": "A dog", "distractors": ["A cat", "A cow"]},
            {"id": "a-2", "question": "Who purrs?", "answer": "A cat", "distractors": ["A dog"], "cluster": "cats"},
            {"id": "a-3", "question": "Who moos?", "answer": "A cow", "distractors": ["A dog", "A cat", "A hen"]},
        ],
    }
)
RAG = RagTask.model_validate(
    {
        "schema": "quantgate.task/1",
        "name": "documents",
        "kind": "rag",
        "title": "Documents",
        "licence": "Apache-2.0",
        "max_tokens": 20,
        "items": [
            {
                "id": "d-1",
                "documents": {"D1": "Tea is hot.", "D2": "Ice is cold."},
                "question": "What is cold?",
                "answers": ["Ice"],
                "document": "D2",
                "distractors": ["Tea"],
            }
        ],
    }
)
TASKS: list[Task] = [CHOICE, RAG]
ANSWERS = {"Who barks": "A dog", "Who purrs": "A dog", "Who moos": "moo " * 9, "What is cold": "Ice [D2]"}
SEQUENCES = [AnswerSequence(f"r-{n}", "s-1", (n, 2), (3, 4)) for n in range(2)]


def _arms() -> dict[str, TableModel]:
    return {arm: TableModel(random_table(seed), answers=ANSWERS) for seed, arm in enumerate(("fp16", "int8", "int4"))}


def _rows() -> list[QualityRow]:
    batches = evaluate(_arms(), "fp16", sequences=SEQUENCES, tasks=TASKS, batch_items=2)
    return list(itertools.chain.from_iterable(batches))


def _value(rows: list[QualityRow], item_id: str, metric: str) -> float:
    return next(row.value for row in rows if (row.arm_id, row.item_id, row.metric) == ("int4", item_id, metric))


def test_generated_answers_are_judged() -> None:
    rows = _rows()
    assert [_value(rows, item, "correct") for item in ("a-1", "a-2", "a-3", "d-1")] == [1, 0, 0, 1]
    assert _value(rows, "d-1", "citation_correct") == 1
    assert _value(rows, "a-3", "stopped") == 0
    assert _value(rows, "a-3", "answer_tokens") == 12
    assert _value(rows, "a-3", "option_named") == 0


def test_floors_are_chance_levels() -> None:
    floors = {(row.item_id, row.metric): row.floor for row in _rows() if row.arm_id == "fp16" and row.tier == "task"}
    assert floors["a-1", "correct"] == 0.0
    assert floors["a-1", "gold_preferred"] == pytest.approx(1 / 3)
    assert floors["a-3", "gold_preferred"] == pytest.approx(1 / 4)
    assert floors["d-1", "correct"] == 0.0
    assert floors["d-1", "gold_preferred"] == 0.5
    assert floors["d-1", "gold_logprob"] is None


def test_the_twin_ranks_under_its_own_prompt() -> None:
    arms = _arms()
    list(evaluate({"fp16": arms["fp16"]}, "fp16", tasks=[RAG]))
    [(prompt_ids, options, _)] = arms["fp16"].logits_calls
    prompt = arms["fp16"].tokenizer.decode(prompt_ids)
    assert prompt.endswith("assistant:\n")
    assert "D2" not in prompt
    assert [arms["fp16"].tokenizer.decode(option) for option in options] == ["Ice", "Tea"]
    assert "[D2]" in arms["fp16"].generate_calls[0][0]


def test_the_preferred_option_and_the_margin_agree() -> None:
    rows = _rows()
    for row in rows:
        if row.metric == "gold_preferred":
            margin = next(
                other.value
                for other in rows
                if (other.arm_id, other.item_id, other.metric) == (row.arm_id, row.item_id, "gold_margin")
            )
            assert (margin > 0) == (row.value == 1.0) == (row.output_text == row.expected_text)


def test_every_arm_has_the_same_rows_and_the_table_holds_them() -> None:
    rows = _rows()
    tasks = Counter((row.arm_id, row.tier) for row in rows if row.tier != "distribution")
    assert len(set(tasks.values())) == 2
    assert {row.arm_id for row in rows if row.tier == "distribution"} == {"int8", "int4"}
    assert {row.cluster_id for row in rows if row.item_id == "a-2"} == {"cats"}
    keys = [(row.arm_id, row.task, row.item_id, row.metric) for row in rows]
    assert len(set(keys)) == len(keys)
    assert quality_table(rows).num_rows == len(rows)


@pytest.mark.parametrize("batches", [1, 2, 3, 4])
def test_what_is_kept_of_an_interrupted_phase_is_paired(batches: int) -> None:
    phase = evaluate(_arms(), "fp16", sequences=SEQUENCES, tasks=TASKS, batch_items=2)
    kept = list(itertools.chain.from_iterable(itertools.islice(phase, batches)))
    items = {
        arm: {(row.task, row.item_id, row.metric) for row in kept if row.arm_id == arm} for arm in ("int8", "int4")
    }
    assert items["int8"] == items["int4"] != set()
    of_baseline = {(row.task, row.item_id, row.metric) for row in kept if row.arm_id == "fp16"}
    assert of_baseline == {key for key in items["int4"] if key[0] != "replay"}


def test_progress_ends_at_its_total_and_counts_real_work() -> None:
    seen: list[QualityProgress] = []
    arms = _arms()
    list(evaluate(arms, "fp16", sequences=SEQUENCES, tasks=TASKS, on_progress=seen.append))
    assert [progress.stage for progress in seen] == ["distribution", "distribution", "animals", "documents"]
    assert seen[-1].done_tokens == seen[-1].total_tokens
    assert all(before.done_tokens < after.done_tokens for before, after in itertools.pairwise(seen))
    computed = sum(
        len(prompt) + sum(map(len, options)) for model in arms.values() for prompt, options, _ in model.logits_calls
    )
    asked = sum(len(prompt) for model in arms.values() for call in model.generate_calls for prompt in call)
    limits = len(arms) * (3 * CHOICE.max_tokens + RAG.max_tokens)
    last_tokens = len(arms) * len(SEQUENCES)  # of an answer, they predict nothing that is compared
    assert seen[-1].total_tokens == computed + asked + limits - last_tokens


def test_an_unknown_baseline_is_refused_before_any_work() -> None:
    with pytest.raises(ValueError, match="'bf16' is not among the arms fp16, int8, int4"):
        next(evaluate(_arms(), "bf16", tasks=TASKS))
