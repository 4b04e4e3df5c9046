"""Sessions of a log: by its own ids, or by continued conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.traffic.log_files import chat_row, write_log
from tests.traffic.records import SECOND

from quantgate.traces.reader import import_trace

START = 1769860800

Place = tuple[str | None, int, float]


def places(tmp_path: Path, *rows: dict[str, Any]) -> tuple[dict[str, Place], dict[str, Any]]:
    """Session, turn and think time (seconds) of each request by its id, and what the reader counted."""
    trace = import_trace(write_log(tmp_path / "access.jsonl", *rows))
    found = {
        record.request_id: (record.session_id, record.turn, record.think_time_ns / SECOND) for record in trace.records
    }
    return found, trace.steps[0].parameters


def test_the_logs_own_sessions_count_turns_and_think_from_the_answers_end(tmp_path: Path) -> None:
    found, counts = places(
        tmp_path,
        chat_row(START, "one", id="a", session_id="anna@x.org", latency_ms=1500),
        chat_row(START + 1, "else", id="b", session_id="alone", latency_ms=100),
        chat_row(START + 4, "two", id="c", session_id="anna@x.org", latency_ms=2000),
        chat_row(START + 5, "three", id="d", session_id="anna@x.org"),
    )
    assert found == {
        "a": ("session-000001", 1, 0),
        "b": (None, 1, 0),
        "c": ("session-000001", 2, 2.5),
        "d": ("session-000001", 3, 0),
    }
    assert (counts["sessions_given"], counts["sessions_inferred"], counts["overlapping_turns"]) == (1, 0, 1)


def test_a_request_that_continues_a_conversation_is_its_next_turn(tmp_path: Path) -> None:
    found, counts = places(
        tmp_path,
        chat_row(START, "hi", id="a", answer="hello", end_time=START + 1),
        chat_row(START, "hi", id="x", answer="hey"),
        chat_row(START + 5, "hi", "hello", "how?", id="b", answer="so", end_time=START + 6),
        chat_row(START + 9, "hi", "hello", "how?", "so", "ah", id="c"),
        chat_row(START + 9, "hi", "hello!", "how?", id="other"),
    )
    assert found == {
        "a": ("session-000001", 1, 0),
        "b": ("session-000001", 2, 4),
        "c": ("session-000001", 3, 3),
        "x": (None, 1, 0),
        "other": (None, 1, 0),
    }
    assert (counts["sessions_given"], counts["sessions_inferred"]) == (0, 1)


def test_a_second_continuation_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    found, _ = places(
        tmp_path,
        chat_row(START, "hi", id="a", answer="hello"),
        chat_row(START + 1, "hi", "hello", "how?", id="b", answer="so"),
        chat_row(START + 2, "hi", "hello", "how?", id="again", answer="so"),
    )
    assert found["b"][:2] == ("session-000001", 2)
    assert found["again"] == (None, 1, 0)


def test_conversations_of_two_users_do_not_join(tmp_path: Path) -> None:
    def row(user: str, **more: Any) -> dict[str, Any]:
        made = chat_row(more.pop("at"), *more.pop("contents"), **more)
        made["request"]["user"] = user
        return made

    found, _ = places(
        tmp_path,
        row("anna", at=START, contents=["hi"], id="anna-1", answer="hello"),
        row("bob", at=START + 1, contents=["hi"], id="bob-1", answer="hello"),
        row("anna", at=START + 2, contents=["hi", "hello", "how?"], id="anna-2"),
    )
    assert found["anna-1"][0] == found["anna-2"][0] == "session-000001"
    assert found["bob-1"][0] is None


def test_without_an_end_the_think_time_counts_from_the_start_and_is_counted(tmp_path: Path) -> None:
    found, counts = places(
        tmp_path,
        chat_row(START, "hi", id="a", answer="hello"),
        chat_row(START + 3, "hi", "hello", "how?", id="b"),
    )
    assert found["b"] == ("session-000001", 2, 3)
    assert counts["think_times_from_start"] == 1


def test_a_session_has_the_class_of_its_first_turn(tmp_path: Path) -> None:
    rows = [
        chat_row(START, "one", session_id="s", slo_class="batch"),
        chat_row(START + 1, "two", session_id="s", slo_class="interactive"),
    ]
    trace = import_trace(write_log(tmp_path / "x.jsonl", *rows))
    assert [record.slo_class for record in trace.records] == ["batch", "batch"]
