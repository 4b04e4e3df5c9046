"""Rows that are checked one by one, without being held, are refused as those of a whole file are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.traffic.log_files import chat_row, write_log

from quantgate.traces import streamed_rows
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.inspection import inspect_trace
from quantgate.traces.reader import import_trace
from quantgate.traces.streamed_rows import SessionCounts
from quantgate_engine.errors import ConfigurationError


def native(row_id: str, offset: float, **more: object) -> str:
    return json.dumps({"id": row_id, "offset": offset, "prompt_tokens": 4, "max_tokens": 2} | more)


def turn(session: str, number: int, offset: float, **more: object) -> str:
    return native(f"{session}.{number}", offset, session=session, turn=number, **more)


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(ConfigurationError) as refused:
        read()
    return str(refused.value)


@pytest.mark.parametrize(
    "rows",
    [
        [native("a", 0), native("b", 1), native("c", 2), native("b", 3), native("a", 4)],
        [native("a", 1), native("b", 0.5)],
        [native("a", 0), turn("s", 1, 1), turn("s", 3, 2)],
        [turn("s", 1, 1), turn("t", 1, 1), turn("s", 2, 2, **{"class": "batch"})],
        [native("a", 0), '{"id": "b", "offset": 1, "prompt_tokens": 4}'],
        [""],
    ],
    ids=["ids", "times", "turns", "classes", "fields", "nothing"],
)
def test_what_does_not_fit_together_is_refused_as_an_import_refuses_it(
    tmp_path: Path, rows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_rows, "_ROWS_AT_A_TIME", 2)
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(rows))
    assert refusal(lambda: inspect_trace(path)) == refusal(lambda: import_trace(path))


def test_ids_that_only_hash_alike_are_no_repetition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_rows, "hash", lambda text: 7, raising=False)
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join([native("a", 0), native("b", 1), native("c", 2)]))
    assert inspect_trace(path).shape.rows == 3
    path.write_text("\n".join([native("a", 0), native("b", 1), native("a", 2)]))
    assert "line 3, field id: expected an id that no other row has, got 'a', which line 1 has" in refusal(
        lambda: inspect_trace(path)
    )


def test_sessions_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join([turn("s", 1, 0), turn("t", 1, 0), native("r", 1), turn("s", 2, 1), turn("s", 3, 2)]))
    assert inspect_trace(path).sessions == SessionCounts(sessions=2, turns=4, most_turns=3)
    path.write_text(native("r", 1))
    assert inspect_trace(path).sessions is None


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "azure.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    assert refusal(lambda: inspect_trace(path)) == refusal(lambda: import_trace(path))


def test_rows_of_a_log_that_are_no_traffic_are_counted_by_kind(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "access.jsonl",
        chat_row(1_769_860_800, "hi", answer=None),
        chat_row(1_769_860_801, "hi", status_code=500),
        chat_row(1_769_860_802, "hi", tokens=0),
        chat_row(1_769_860_803, "hi", status_code=500),
    )
    found = inspect_trace(log)
    assert (found.format, found.shape.rows, found.left_out) == ("openai-log", 1, {"empty_answer": 1, "failed": 2})
    assert [step.name for step in found.steps] == ["read log"]
    assert "line 2: field status_code: expected a status below 400, got 500" in refusal(
        lambda: inspect_trace(log, ImportSettings(strict=True))
    )
