"""The quality section of a suite."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import Field

from quantgate.quality.distribution import AnswerSequence
from quantgate.quality.task_files import load_task
from quantgate.quality.task_item import Identifier, StrictModel, Task
from quantgate_engine.errors import ConfigurationError

Count = Annotated[int, Field(strict=True, ge=1)]


class DistributionConfig(StrictModel):
    """How much of the replay is compared token by token."""

    sequences: Count = 48
    max_prompt_tokens: Count = 384
    """Requests with longer prompts are left out: they cost most and add one answer each all the same."""
    max_answer_tokens: Count = 32
    """Answers are compared up to this token."""

    def choose(self, sequences: Sequence[AnswerSequence], seed: int) -> list[AnswerSequence]:
        """A seeded choice that depends on request ids alone, so that every run of a plan compares the same requests."""
        short = [sequence for sequence in sequences if len(sequence.prompt_ids) <= self.max_prompt_tokens]
        ranked = sorted(short, key=lambda sequence: sha256(f"{seed}:{sequence.request_id}".encode()).digest())
        return [
            AnswerSequence(
                sequence.request_id,
                sequence.cluster_id,
                sequence.prompt_ids,
                sequence.output_ids[: self.max_answer_tokens],
            )
            for sequence in ranked[: self.sequences]
        ]


class TaskConfig(StrictModel):
    """One task of a suite; `limit` keeps that many of its items (None: all)."""

    limit: Count | None = None


class QualityConfig(StrictModel):
    """Which quality tiers a suite measures; a tier that is not named is not measured.

    `tasks` maps the name of a task file (without `.yaml`) to its settings.
    """

    distribution: DistributionConfig | None = None
    tasks: dict[Identifier, TaskConfig] = Field(default_factory=dict)

    def load_tasks(self, folder: Path) -> list[Task]:
        """The chosen tasks with the chosen items.

        Raises ConfigurationError for a name that is no task of the folder, and where a file is wrong.
        """
        known = sorted(file.stem for file in folder.glob("*.yaml"))
        for name in self.tasks:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                advice = f"did you mean {near[0]}?" if near else f"expected some of: {', '.join(known) or 'none'}."
                raise ConfigurationError(
                    f"The suite's field quality.tasks.{name}: there is no task of this name in {folder}; {advice}"
                )
        return [load_task(folder / f"{name}.yaml", config.limit) for name, config in self.tasks.items()]
