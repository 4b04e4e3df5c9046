"""Column maps: fields wherever a log keeps them, classes by rule, and exact errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.traffic.log_files import chat_row, write_log
from tests.traffic.records import SECOND

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.columns import load_column_map
from quantgate.traces.openai_log.lookup import MISSING, look_up
from quantgate.traces.reader import import_trace
from quantgate.traces.record import Message, TraceRecord
from quantgate_engine.errors import ConfigurationError

MAP = """\
schema: quantgate.columns/1
only:
  - {path: route, equals: /v1/chat/completions}
  - {path: model, one_of: [big, bigger]}
time: {path: at, unit: ms, marks: end}
latency: {path: took.total, unit: s}
id: trace
messages: payload.msgs
max_tokens: payload.limits.out
prompt_tokens: counts.in
output_tokens: counts.out
session: [headers.X-Conversation, thread]
class:
  rules:
    - {class: batch, path: payload.limits.out, at_least: 1000}
    - {class: batch, path: agent, matches: "^nightly"}
  path: tier
  values: {gold: interactive, bronze: batch}
tags: labels
"""


def columns(tmp_path: Path, text: str = MAP) -> ImportSettings:
    path = tmp_path / "columns.yaml"
    path.write_text(text, encoding="utf-8")
    return ImportSettings(columns=load_column_map(path))


def odd_row(number: int, **changes: Any) -> dict[str, Any]:
    row = {
        "route": "/v1/chat/completions", "model": "big", "at": 2000 + 1000 * number, "took": {"total": 0.5},
        "trace": f"t{number}", "payload": {"msgs": [{"role": "user", "content": f"q{number}"}], "limits": {"out": 50}},
        "counts": {"in": 7, "out": 5}, "labels": ["rag", 7],
    }  # fmt: skip
    return row | changes


def test_every_field_is_found_where_the_map_says(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "odd.log",
        odd_row(0),
        odd_row(1, route="/v1/embeddings"),
        odd_row(2, model="small"),
        odd_row(3, headers={"x-conversation": "c"}, tier="bronze"),
        odd_row(4, thread="c", tier="bronze"),
    )
    trace = import_trace(log, columns(tmp_path))
    common: dict[str, Any] = {"prompt_token_count": 7, "limit_tokens": 50, "tags": ("rag", "7")}
    in_session = common | {"slo_class": "batch", "session_id": "session-000001"}
    assert trace.records == [
        TraceRecord("t0", 0, 5, messages=(Message("user", "q0"),), **common),
        TraceRecord(
            "t3", 3 * SECOND, 5, messages=(Message("user", "q3"),), **in_session
        ),
        TraceRecord(
            "t4", 4 * SECOND, 5, messages=(Message("user", "q4"),), turn=2,
            think_time_ns=SECOND // 2, **in_session,
        ),
    ]  # fmt: skip
    assert trace.steps[0].parameters["left_out"] == {"not_selected": 2}
    assert trace.steps[0].parameters["shape"] == "column map"


def test_rows_that_are_not_selected_do_not_break_strict_reading(tmp_path: Path) -> None:
    log = write_log(tmp_path / "odd.log", odd_row(0), odd_row(1, route="/health"))
    settings = ImportSettings(columns=columns(tmp_path).columns, strict=True)
    assert len(import_trace(log, settings).records) == 1


@pytest.mark.parametrize(
    ("changes", "slo_class"),
    [
        ({}, "interactive"),
        ({"tier": "gold"}, "interactive"),
        ({"tier": "bronze"}, "batch"),
        ({"payload": {"msgs": [{"role": "user", "content": "x"}], "limits": {"out": 1000}}}, "batch"),
        ({"payload": {"msgs": [{"role": "user", "content": "x"}], "limits": {"out": 999}}}, "interactive"),
        ({"agent": "nightly-report", "tier": "gold"}, "batch"),
        ({"agent": "my-nightly"}, "interactive"),
    ],
)
def test_the_first_rule_that_holds_gives_the_class_then_the_field(
    tmp_path: Path, changes: dict[str, Any], slo_class: str
) -> None:
    trace = import_trace(write_log(tmp_path / "x.log", odd_row(0, **changes)), columns(tmp_path))
    assert trace.records[0].slo_class == slo_class


def test_a_class_that_the_map_does_not_know_is_refused(tmp_path: Path) -> None:
    log = write_log(tmp_path / "x.log", odd_row(0, tier="silver"))
    with pytest.raises(ConfigurationError) as caught:
        import_trace(log, columns(tmp_path))
    assert str(caught.value) == (
        f"{log}, line 1, field tier: expected one of 'gold', 'bronze' (the values of the column map), got 'silver'."
    )


def test_a_time_of_the_end_needs_the_latency(tmp_path: Path) -> None:
    log = write_log(tmp_path / "x.log", odd_row(0, took={}))
    with pytest.raises(ConfigurationError, match=r"x\.log, line 1, field at: this time marks the answer's end, so "):
        import_trace(log, columns(tmp_path))


def test_what_the_map_does_not_say_stays_at_its_usual_place(tmp_path: Path) -> None:
    log = write_log(tmp_path / "x.jsonl", chat_row(1769860800, "hi", tier="batch"))
    trace = import_trace(log, columns(tmp_path, "class: {path: tier}\n"))
    assert trace.records == [
        TraceRecord(
            "line-1",
            0,
            3,
            messages=(Message("user", "hi"),),
            prompt_token_count=10,
            limit_tokens=100,
            slo_class="batch",
        )
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("messages: 3\n", "columns.yaml, line 1, field messages: expected text or a list, got 3."),
        ("mesages: a\n", "columns.yaml, line 1, field mesages: unknown key, did you mean messages?"),
        (
            "time: {unit: minutes}\n",
            "columns.yaml, line 1, field time.unit: expected 'auto', 'iso', 's', 'ms', 'us' or 'ns'",
        ),
        (
            "only: [{path: a}]\n",
            "columns.yaml, line 1, field only.0: expected at least one of equals, one_of, matches, ",
        ),
        (
            "only: [{path: a, matches: '('}]\n",
            "columns.yaml, line 1, field only.0.matches: expected a valid regular expression (",
        ),
        ("schema: quantgate.columns/2\n", "columns.yaml, line 1, field schema: expected 'quantgate.columns/1', got "),
    ],
)
def test_a_map_that_is_wrong_is_refused_with_line_and_field(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        columns(tmp_path, text)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(sentence)


def test_a_map_is_refused_for_formats_with_fixed_columns(tmp_path: Path) -> None:
    log = write_log(tmp_path / "x.log", odd_row(0))
    settings = ImportSettings(format_name="azure-csv", columns=columns(tmp_path).columns)
    with pytest.raises(ConfigurationError, match="the format azure-csv has fixed columns"):
        import_trace(log, settings)


ROW = {"a": {"b.c": 1, "d": '{"e": [10, {"f": null}]}'}, "a.x": 2, "Head": {"X-Id": 3}, "n": "not json", "list": [[5]]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b.c", 1),
        ("a.x", 2),
        ("Head.x-id", 3),
        ("head.x-id", MISSING),
        ("a.d.e.0", 10),
        ("a.d.e.1.f", None),
        ("list.0.0", 5),
        ("a.d.e.2", MISSING),
        ("a.d.e.-1", MISSING),
        ("n.x", MISSING),
        ("a.b", MISSING),
        ("zz", MISSING),
    ],
)
def test_paths_enter_objects_lists_and_json_texts(path: str, value: Any) -> None:
    assert look_up(ROW, path) == value
