"""A verdict says where the arms' answers are no equal work: other lengths, or tokens counted in another way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from quantgate.gate.judge import judge
from quantgate.gate.policy import stored_policy
from quantgate.store.run_folder import LoadedRun

RunOf = Callable[..., LoadedRun]
POLICY = stored_policy(
    {
        "schema": "quantgate.policy/1", "name": "p", "resamples": 1000, "gain": None, "aa": {"required": False},
        "rules": [{"metric": "ttft_ms", "margin": "50%"}],
    },
    "p",
)  # fmt: skip


def notes_of(run: LoadedRun, opening: str) -> list[str]:
    return [note for note in judge(run, POLICY, today=date(2026, 1, 1)).notes if note.startswith(opening)]


def changed(run: LoadedRun, lengths: str = "natural", **columns: Any) -> LoadedRun:
    """The candidate's first 20 requests with other values."""
    rows = run.requests.to_pylist()
    own = [row for row in rows if row["arm_id"] == "other"]
    for row in own[:20]:
        row |= columns
    workload = run.manifest.workload
    assert workload is not None
    manifest = run.manifest.model_copy(update={"workload": workload.model_copy(update={"output_lengths": lengths})})
    return replace(run, manifest=manifest, requests=pa.Table.from_pylist(rows, schema=run.requests.schema))


@pytest.fixture
def run(run_of: RunOf, arm: Any) -> LoadedRun:
    return run_of(arm("base", "baseline"), arm("other"), requests=80)


def test_equal_answers_need_no_note(run: LoadedRun) -> None:
    for lengths in ("natural", "forced"):
        assert notes_of(changed(run, lengths), "Answer lengths") == []
    assert notes_of(run, "Token counting") == []


@pytest.mark.parametrize(
    ("tokens", "words"),
    [(4, "20.0 % shorter (20.0 to 16.0 tokens)"), (40, "25.0 % longer (20.0 to 25.0 tokens)")],
)
def test_other_lengths_are_told_with_their_size(run: LoadedRun, tokens: int, words: str) -> None:
    [note] = notes_of(changed(run, output_tokens=tokens), "Answer lengths")
    assert "other and base gave different numbers of tokens in 20 of 80 requests that both finished" in note
    assert f"other's answers are on average {words}" in note
    assert "forced" not in note


def test_forced_lengths_that_were_not_kept_are_told(run: LoadedRun) -> None:
    [note] = notes_of(changed(run, "forced", output_tokens=1), "Answer lengths")
    assert note.startswith("Answer lengths: although the replay asked for forced lengths, other and base")


def test_failed_answers_are_no_shorter_answers(run: LoadedRun) -> None:
    assert notes_of(changed(run, status="failed", output_tokens=0), "Answer lengths") == []


def test_tokens_counted_in_another_way_are_told(run: LoadedRun) -> None:
    [note] = notes_of(changed(run, counted_by="chunks"), "Token counting")
    assert "in 20 of 80 requests that both finished, the tokens of other were counted in another way" in note
    assert "(mostly chunks instead of engine)" in note
