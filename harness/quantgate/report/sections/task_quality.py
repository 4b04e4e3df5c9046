"""The task tier in words: accuracy with its interval, its floor, and the flips against the baseline."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate.report.estimates import proportion
from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, count, percent, significant, with_interval
from quantgate.report.run_view import ArmView, RunView, rows_where

CORRECTNESS = {"correct": "answer", "gold_preferred": "likelihood twin"}
"""Metrics that are 1 for right and 0 for wrong, and what the report calls them."""


@dataclass(frozen=True)
class Item:
    """One task item as one arm solved it."""

    task: str
    item_id: str
    metric: str
    right: bool
    floor: float | None
    output: str | None
    expected: str | None
    detail: str | None


Key = tuple[str, str, str]


def solved_items(arm: ArmView) -> dict[Key, Item]:
    """The arm's items by (task, metric, item id)."""
    return {
        (row["task"], row["metric"], row["item_id"]): Item(
            row["task"], row["item_id"], row["metric"], row["value"] >= 0.5, row["floor"], row["output_text"],
            row["expected_text"], row["detail"],
        )
        for row in rows_where(arm.quality, "tier", "task").to_pylist()
        if row["metric"] in CORRECTNESS
    }  # fmt: skip


def task_table(view: RunView) -> Table | None:
    solved = {arm.arm_id: solved_items(arm) for arm in view.arms}
    kinds = sorted({key[:2] for items in solved.values() for key in items})
    if not kinds:
        return None
    baseline = solved.get(view.baseline.arm_id, {}) if view.baseline else {}
    rows = []
    for task, metric in kinds:
        for arm in view.arms:
            mine = {key: item for key, item in solved[arm.arm_id].items() if key[:2] == (task, metric)}
            if mine:
                rows.append(_row(f"{task.replace('_', ' ')}: {CORRECTNESS[metric]}", arm, mine, baseline))
    return Table(["task", "arm", "items", "right", "chance level", "lost", "won", "reading"], rows)


def _row(name: str, arm: ArmView, mine: dict[Key, Item], baseline: dict[Key, Item]) -> list[str]:
    right = sum(item.right for item in mine.values())
    accuracy = proportion(right, len(mine))
    floors = [item.floor for item in mine.values() if item.floor is not None]
    floor = sum(floors) / len(floors) if floors else None
    if arm.role == "baseline":
        lost = won = NOTHING
    else:
        both = [(baseline[key].right, item.right) for key, item in mine.items() if key in baseline]
        lost, won = count(both.count((True, False))), count(both.count((False, True)))
    at_floor = floor is not None and (accuracy is None or accuracy.low is None or accuracy.low <= floor)
    silent = "not above chance, so the task cannot show harm"
    reading = (silent if arm.role == "baseline" else "not above chance") if at_floor else "above chance"
    return [
        name,
        arm.arm_id,
        count(len(mine)),
        with_interval(accuracy, percent),
        NOTHING if floor is None else percent(floor),
        lost,
        won,
        reading,
    ]


def behaviour_table(view: RunView) -> Table | None:
    """Means of the behaviour metrics, one row per task and metric."""
    sums: dict[tuple[str, str], dict[str, tuple[float, int]]] = {}
    for arm in view.arms:
        tier = rows_where(arm.quality, "tier", "behaviour")
        grouped = tier.group_by(["task", "metric"]).aggregate([("value", "mean"), ("value", "count")])
        for row in grouped.to_pylist():
            sums.setdefault((row["task"], row["metric"]), {})[arm.arm_id] = (row["value_mean"], row["value_count"])
    if not sums:
        return None
    rows = [
        [
            f"{task.replace('_', ' ')}: {metric.replace('_', ' ')}",
            *(significant(by_arm[arm.arm_id][0]) if arm.arm_id in by_arm else NOTHING for arm in view.arms),
        ]
        for (task, metric), by_arm in sorted(sums.items())
    ]
    return Table(["behaviour (mean)", *(arm.arm_id for arm in view.arms)], rows)
