"""Code: one small Python task each."""

from __future__ import annotations

from quantgate.workload.sample_drawing.draft import Draft, DraftTurn
from quantgate.workload.sample_drawing.seeded_draws import SeededDraws
from quantgate.workload.sample_drawing.texts import CodeTask, SampleTexts

TASKS = 61


def code_drafts(texts: SampleTexts, draws: SeededDraws) -> list[Draft]:
    """`TASKS` of the authored tasks, each once."""
    chosen = draws.shuffled(texts.code)[:TASKS]
    return [_draft(task, draws.choice(texts.styles.code)) for task in chosen]


def _draft(task: CodeTask, system: str | None) -> Draft:
    user = task.ask if task.given is None else f"{task.ask}\n\n```python\n{task.given}\n```"
    opening = () if system is None else (("system", system),)
    checker = {"kind": "python_syntax", "defines": task.function}
    return Draft("code", (DraftTurn((*opening, ("user", user)), checker),), may_wait=True)
