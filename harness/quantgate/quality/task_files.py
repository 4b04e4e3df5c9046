"""The kinds of task, and reading, choosing and hashing their items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, RootModel

from quantgate.quality.task_item import Task, TaskItem
from quantgate.quality.tasks.code import CodeTask
from quantgate.quality.tasks.multi_turn import MultiTurnTask
from quantgate.quality.tasks.multiple_choice import ChoiceTask
from quantgate.quality.tasks.rag import RagTask
from quantgate.quality.tasks.tool_calls import ToolTask
from quantgate.validation import load_yaml_model

AnyTask = Annotated[RagTask | CodeTask | ToolTask | MultiTurnTask | ChoiceTask, Field(discriminator="kind")]


class TaskFile(RootModel[AnyTask]):
    """A task file of any kind; its key `kind` says which."""


def load_task(path: Path, limit: int | None = None) -> Task:
    """Read a task file and keep at most `limit` of its items.

    Raises ConfigurationError with file, line, field and what was expected.
    """
    task: Task = load_yaml_model(path, TaskFile).root
    return task.model_copy(update={"items": choose_items(task.items, limit)})


def choose_items(items: Sequence[TaskItem], limit: int | None) -> list[TaskItem]:
    """The `limit` items whose ids hash lowest, in the file's order.

    Every smaller choice lies inside every larger one, and where the author put an item plays no part.
    """
    ranked = sorted(items, key=lambda item: hashlib.sha256(item.id.encode()).digest())
    kept = {item.id for item in ranked[:limit]}
    return [item for item in items if item.id in kept]


def items_sha256(tasks: Sequence[Task]) -> str:
    """Hash of everything that decides what the arms are asked and how they are judged."""
    digest = hashlib.sha256()
    for task in tasks:
        for item in task.items:
            row: dict[str, Any] = {
                "task": task.name,
                "max_tokens": task.max_tokens,
                "item": item.model_dump(mode="json"),
                "messages": [[message.role, message.content] for message in item.messages()],
                "twin_messages": [[message.role, message.content] for message in item.twin_messages()],
                "options": [item.gold, item.twin_gold, *item.wrong_answers],
            }
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()
