"""The quality items of a comparison that no suite describes: the bundled tasks in the shares of the suite `quick`."""

from __future__ import annotations

from quantgate.quality.config import DistributionConfig, QualityConfig, TaskConfig

_ITEMS = {"rag": 12, "code": 16, "tool_calls": 10, "multi_turn": 12, "multiple_choice": 20}
USUAL_ITEMS = sum(_ITEMS.values())


def usual_quality(items: int = USUAL_ITEMS) -> QualityConfig:
    """`items` task items in all, shared among the tasks in proportion, to within one item each; no task for 0.

    A task that has fewer items than its share gives all that it has.
    """
    limits, weight, taken = {}, 0, 0
    for name, usual in _ITEMS.items():
        weight += usual
        limits[name] = items * weight // USUAL_ITEMS - taken
        taken += limits[name]
    return QualityConfig(
        distribution=DistributionConfig(sequences=40, max_prompt_tokens=256, max_answer_tokens=24),
        tasks={name: TaskConfig(limit=limit) for name, limit in limits.items() if limit},
    )
