"""Reading task files: the bundled ones hold together, and a wrong one is told in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from quantgate.quality.config import DistributionConfig, QualityConfig, TaskConfig
from quantgate.quality.distribution import AnswerSequence
from quantgate.quality.task_files import choose_items, items_sha256, load_task
from quantgate.quality.task_item import Answer
from quantgate.resources import bundled_root
from quantgate_engine.errors import ConfigurationError

FOLDER = bundled_root() / "suites" / "tasks"
NAMES = ("code", "multi_turn", "multiple_choice", "rag", "tool_calls")


def _choice_file(tmp_path: Path, **changes: Any) -> Path:
    item = {"id": "a-1", "question": "Who barks?", "answer": "A dog", "distractors": ["A cat", "A cow"]}
    document: dict[str, Any] = {
        "schema": "quantgate.task/1",
        "name": "animals",
        "kind": "multiple_choice",
        "title": "Animals",
        "licence": "Apache-2.0",
        "max_tokens": 8,
        "items": [item],
    }
    path = tmp_path / "animals.yaml"
    path.write_text(yaml.safe_dump(document | changes, sort_keys=False))
    return path


def _item(**changes: Any) -> list[dict[str, Any]]:
    return [{"id": "a-1", "question": "Who barks?", "answer": "A dog", "distractors": ["A cat", "A cow"]} | changes]


@pytest.mark.parametrize("name", NAMES)
def test_bundled_tasks_hold_together(name: str) -> None:
    task = load_task(FOLDER / f"{name}.yaml")
    assert task.name == name
    assert len(task.items) >= 36
    assert task.max_tokens <= 48
    for item in task.items:
        assert item.check(Answer(item.gold)).correct
        assert len(item.wrong_answers) == 3
        assert item.twin_floor == 0.25


def test_bundled_ids_and_prompts_are_unique_over_all_tasks() -> None:
    items = [item for name in NAMES for item in load_task(FOLDER / f"{name}.yaml").items]
    assert len({item.id for item in items}) == len(items)
    assert len({item.messages() for item in items}) == len(items)


def test_abstention_is_asked_for_in_a_part_of_the_tool_items() -> None:
    items = load_task(FOLDER / "tool_calls.yaml").items
    abstentions = [item for item in items if item.gold == '{"name": "none", "arguments": {}}']
    assert 6 <= len(abstentions) <= len(items) // 3


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kind": "essay"}, "essay"),
        ({"extra": 1}, "field extra: unknown key"),
        ({"max_tokens": "many"}, "line 6, field max_tokens: expected an integer, got 'many'"),
        ({"max_tokens": 0}, "field max_tokens: expected a value of at least 1, got 0"),
        ({"licence": "CC-BY-NC"}, "field licence: expected 'Apache-2.0', got 'CC-BY-NC'"),
        ({"items": []}, "field items: expected at least 1 item"),
        ({"items": _item(answer=7)}, "line 10, field items.0.answer: expected text, got 7"),
        ({"items": _item(question="")}, "field items.0.question: expected text of at least 1 character"),
        ({"items": _item(distractors=["A dog"])}, "item a-1: the gold answer and the distractors must all differ"),
        ({"items": _item(distractors=["Dog"])}, "item a-1: the checker refuses the item's own gold"),
        ({"items": _item(id="A 1")}, "field items.0.id"),
        ({"items": _item() + _item()}, "item id 'a-1' stands twice in the task 'animals'"),
    ],
)
def test_a_wrong_file_is_told_in_one_sentence(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    path = _choice_file(tmp_path, **changes)
    with pytest.raises(ConfigurationError) as caught:
        load_task(path)
    assert str(path) in str(caught.value)
    assert sentence in str(caught.value)


def _tool_file(tmp_path: Path, **changes: Any) -> Path:
    item: dict[str, Any] = {
        "id": "t-1",
        "request": "Ten minutes!",
        "tools": {"set_timer": {"minutes": "integer"}},
        "call": {"name": "set_timer", "arguments": {"minutes": [10]}},
        "distractors": [{"name": "set_timer", "arguments": {"minutes": 1}}],
    }
    return _choice_file(tmp_path, kind="tool_calls", items=[item | changes])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"call": {"name": "set_alarm", "arguments": {}}}, "the call does not fit the tools"),
        ({"call": {"name": "set_timer", "arguments": {"minutes": ["ten"]}}}, "the call does not fit the tools"),
        ({"tools": {"none": {}}}, "the name 'none' stands for no tool"),
        ({"tools": {"set_timer": {"minutes": "int"}}}, "field items.0.tools.set_timer.minutes"),
    ],
)
def test_a_tool_item_that_contradicts_itself(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        load_task(_tool_file(tmp_path, **changes))


def test_a_missing_task_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"field quality\.tasks\.poetry: there is no task .*; expected some of: c"
    ):
        QualityConfig(tasks={"poetry": TaskConfig()}).load_tasks(FOLDER)
    with pytest.raises(ConfigurationError, match=r"quality\.tasks\.multiple: .*; did you mean multiple_choice\?$"):
        QualityConfig(tasks={"multiple": TaskConfig()}).load_tasks(FOLDER)
    with pytest.raises(ConfigurationError, match="expected some of: none"):
        QualityConfig(tasks={"poetry": TaskConfig()}).load_tasks(tmp_path)


def test_smaller_choices_lie_inside_larger_ones_and_keep_the_order() -> None:
    items = load_task(FOLDER / "rag.yaml").items
    chosen = {limit: [item.id for item in choose_items(items, limit)] for limit in (5, 20, 40, 99)}
    assert [len(ids) for ids in chosen.values()] == [5, 20, 40, 40]
    assert set(chosen[5]) < set(chosen[20]) < set(chosen[40])
    assert chosen[20] == sorted(chosen[20])
    assert chosen[5] != chosen[40][:5]
    assert [item.id for item in choose_items(list(reversed(items)), 5)] == chosen[5][::-1]


def test_a_limited_load_is_the_choice() -> None:
    path = FOLDER / "code.yaml"
    assert load_task(path, limit=7).items == choose_items(load_task(path).items, 7)


def test_the_hash_covers_items_limits_and_token_limits() -> None:
    config = QualityConfig(tasks={"rag": TaskConfig(limit=5), "code": TaskConfig(limit=5)})
    tasks = config.load_tasks(FOLDER)
    digest = items_sha256(tasks)
    assert digest == items_sha256(config.load_tasks(FOLDER))
    assert digest != items_sha256(tasks[::-1])
    assert digest != items_sha256([tasks[0]])
    assert digest != items_sha256([tasks[0].model_copy(update={"max_tokens": 9}), tasks[1]])
    changed = tasks[0].items[0].model_copy(update={"question": "Which?"})
    assert digest != items_sha256([tasks[0].model_copy(update={"items": [changed, *tasks[0].items[1:]]}), tasks[1]])


def test_sequences_are_chosen_by_seed_and_id_alone() -> None:
    sequences = [AnswerSequence(f"r-{n}", f"r-{n}", (1,) * (n + 1), tuple(range(9))) for n in range(30)]
    config = DistributionConfig(sequences=8, max_prompt_tokens=20, max_answer_tokens=4)
    chosen = config.choose(sequences, seed=1)
    assert len(chosen) == 8
    assert {sequence.output_ids for sequence in chosen} == {(0, 1, 2, 3)}
    assert max(len(sequence.prompt_ids) for sequence in chosen) <= 20
    assert chosen == config.choose(sequences[::-1], seed=1)
    assert chosen != config.choose(sequences, seed=2)
