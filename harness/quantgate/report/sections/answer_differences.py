"""Replayed answers that came out different from the baseline's: how many, and the earliest to part, side by side."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate.report.run_view import ArmView, RunView
from quantgate.report.untrusted import Excerpt, excerpt

MOST_ANSWERS_PER_ARM = 8
MOST_CHARACTERS = 800


@dataclass(frozen=True, slots=True)
class _Answer:
    tags: list[str]
    tokens: list[int]
    prompt: str | None
    text: str | None


@dataclass(frozen=True)
class Difference:
    """`shared_tokens`: how many tokens both answers share at their start."""

    request_id: str
    tags: list[str]
    shared_tokens: int
    prompt: Excerpt | None
    baseline: Excerpt | None
    candidate: Excerpt | None


@dataclass(frozen=True)
class ArmDifferences:
    arm_id: str
    compared: int
    different: int
    shown: list[Difference]


def answer_differences(view: RunView) -> list[ArmDifferences]:
    if view.baseline is None:
        return []
    baseline = _finished_answers(view.baseline)
    return [_of_arm(arm, baseline) for arm in view.arms if arm.role != "baseline" and arm.requests.num_rows]


def _finished_answers(arm: ArmView) -> dict[tuple[int, str], _Answer]:
    names = ["pass_index", "request_id", "status", "tags", "output_token_ids", "prompt_text", "output_text"]
    return {
        (row["pass_index"], row["request_id"]): _Answer(
            row["tags"], row["output_token_ids"], row["prompt_text"], row["output_text"]
        )
        for row in arm.requests.select(names).to_pylist()
        if row["status"] == "finished"
    }


def _of_arm(arm: ArmView, baseline: dict[tuple[int, str], _Answer]) -> ArmDifferences:
    pairs = [(key[1], baseline[key], answer) for key, answer in _finished_answers(arm).items() if key in baseline]
    parted = [(_shared(old.tokens, new.tokens), name, old, new) for name, old, new in pairs if old.tokens != new.tokens]
    parted.sort(key=lambda entry: entry[:2])
    shown = [
        Difference(
            name,
            old.tags,
            shared,
            excerpt(old.prompt, MOST_CHARACTERS),
            excerpt(old.text, MOST_CHARACTERS),
            excerpt(new.text, MOST_CHARACTERS),
        )
        for shared, name, old, new in parted[:MOST_ANSWERS_PER_ARM]
        if old.text is not None or new.text is not None
    ]
    return ArmDifferences(arm.arm_id, len(pairs), len(parted), shown)


def _shared(old: list[int], new: list[int]) -> int:
    pairs = zip(old, new, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))
