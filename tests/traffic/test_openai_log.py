"""Request logs: the shapes that are read as they come, lengths, times, and rows that are left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.traffic.log_files import chat_row, write_log
from tests.traffic.records import SECOND

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.reader import ImportedTrace, import_trace
from quantgate.traces.record import Message, TraceRecord
from quantgate_engine.errors import ConfigurationError

HI = (Message("user", "hi"),)


def imported(tmp_path: Path, *rows: dict[str, Any] | str, **settings: Any) -> ImportedTrace:
    return import_trace(write_log(tmp_path / "access.jsonl", *rows), ImportSettings(**settings))


def refusal(tmp_path: Path, *rows: dict[str, Any] | str, **settings: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        imported(tmp_path, *rows, **settings)
    return str(caught.value).removeprefix(f"{tmp_path}/")


def counts(trace: ImportedTrace) -> dict[str, Any]:
    return trace.steps[0].parameters


SHAPES: list[tuple[str, dict[str, Any]]] = [
    ("gateway", chat_row("2026-01-31T12:00:00Z", "hi")),
    (
        "flat",
        {"time": 1769860800, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 100, "completion_tokens": 3,
         "prompt_tokens": 10},
    ),
    (
        "bodies as text",
        {"ts": 1769860800.25, "request_body": json.dumps({"messages": [{"role": "user", "content": "hi"}],
                                                          "max_completion_tokens": 100}),
         "response_body": json.dumps({"usage": {"prompt_tokens": 10, "completion_tokens": 3}})},
    ),
    (
        "body inside the request",
        {"created_at": "2026-01-31 12:00:00.123456",
         "request": {"body": {"messages": [{"role": "user", "content": "hi"}],
         "max_tokens": 100}}, "response": {"body": {"usage": {"prompt_tokens": 10, "completion_tokens": 3}},
                                           "status_code": 200}},
    ),
    (
        "content parts",
        {"timestamp": 1769860800_000,
         "body": {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
         "max_tokens": 100}, "usage": {"input_tokens": 10, "output_tokens": 3}},
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", [shape[1] for shape in SHAPES], ids=[shape[0] for shape in SHAPES])
def test_common_shapes_are_read_as_they_come(tmp_path: Path, row: dict[str, Any]) -> None:
    assert imported(tmp_path, row).records == [
        TraceRecord("line-1", 0, 3, messages=HI, prompt_token_count=10, limit_tokens=100)
    ]


def test_a_log_of_aiperf_counts_milliseconds_from_its_start(tmp_path: Path) -> None:
    rows = [
        {"timestamp": time, "messages": [{"role": "user", "content": "hi"}], "output": "x" * 8, "session_id": str(time)}
        for time in (0, 250)
    ]
    trace = imported(tmp_path, *rows)
    assert counts(trace)["shape"] == "aiperf"
    assert [record.scheduled_ns for record in trace.records] == [0, SECOND // 4]


def test_raw_prompts_are_read_and_named_ids_kept(tmp_path: Path) -> None:
    row = {"timestamp": "2026-01-31T12:00:00Z", "id": "req-7", "request": {"prompt": "Once upon", "max_tokens": 9}}
    assert imported(tmp_path, row, row | {"id": "req-8", "request": {"prompt": ["Once"], "max_tokens": 9}}).records == [
        TraceRecord("req-7", 0, 9, prompt_text="Once upon", limit_tokens=9),
        TraceRecord("req-8", 0, 9, prompt_text="Once", limit_tokens=9),
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-01-31T12:00:00.25Z", "2026-01-31T13:00:00.75+01:00"),
        (1769860800.25, 1769860800.75),
        ("1769860800.25", "1769860800.75"),
        (1769860800_250, 1769860800_750),
        (1769860800_250_000, 1769860800_750_000),
        (1769860800_250_000_000, 1769860800_750_000_000),
    ],
)
def test_times_are_dates_or_numbers_since_1970_in_any_usual_unit(tmp_path: Path, first: Any, second: Any) -> None:
    trace = imported(tmp_path, chat_row(first, "hi"), chat_row(second, "ho"))
    assert [record.scheduled_ns for record in trace.records] == [0, SECOND // 2]


def test_rows_are_put_in_order_of_their_start_and_counted(tmp_path: Path) -> None:
    trace = imported(tmp_path, *(chat_row(1769860800 + second, f"q{second}") for second in (2, 0, 1)))
    assert [record.scheduled_ns for record in trace.records] == [0, SECOND, 2 * SECOND]
    assert counts(trace)["out_of_order"] == 1


def test_lengths_come_from_usage_then_the_answer_then_the_limit(tmp_path: Path) -> None:
    rows = [
        chat_row(1769860800, "a", answer="one two three", tokens=7),
        chat_row(1769860801, "b", answer="one two three", tokens=None),
        chat_row(1769860802, "c", answer=None, tokens=None),
    ]
    trace = imported(tmp_path, *rows, count_tokens=lambda text: len(text.split()))
    assert [(record.max_tokens, record.limit_tokens) for record in trace.records] == [(7, 100), (3, 100), (100, 100)]
    assert counts(trace)["output_lengths_from"] == {"usage": 1, "answer": 1, "limit": 1}


def test_without_a_tokenizer_an_answer_has_a_token_for_four_characters(tmp_path: Path) -> None:
    trace = imported(tmp_path, chat_row(1769860800, "b", answer="123456789", tokens=None))
    assert trace.records[0].max_tokens == 3
    assert counts(trace)["output_lengths_from"] == {"answer_characters": 1}


def test_tool_calls_stay_as_json_behind_the_text(tmp_path: Path) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    row = chat_row(1769860800, "hi")
    row["request"]["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "3 degrees"},
        {"role": "developer", "content": "Be short."},
    ]
    row["request"]["tools"] = [{"type": "function", "function": {"name": "weather"}}]
    trace = imported(tmp_path, row)
    assert trace.records[0].messages == (
        *HI,
        Message("assistant", '[{"name": "weather", "arguments": {"city": "Oslo"}}]'),
        Message("tool", "3 degrees"),
        Message("system", "Be short."),
    )
    assert counts(trace)["requests_that_offered_tools"] == 1


def test_text_parts_are_joined_by_lines(tmp_path: Path) -> None:
    row = chat_row(1769860800, "hi")
    row["request"]["messages"][0]["content"] = [{"type": "text", "text": "one"}, {"type": "input_text", "text": "two"}]
    assert imported(tmp_path, row).records[0].messages == (Message("user", "one\ntwo"),)


def test_images_are_refused_or_dropped_and_counted(tmp_path: Path) -> None:
    row = chat_row(1769860800, "hi")
    row["request"]["messages"][0]["content"] = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:"}},
    ]
    assert refusal(tmp_path, row) == (
        "access.jsonl, line 1, field request.messages.0.content.1: expected a part of type text, got 'image_url', "
        "which is no text to replay; leave such rows out, or drop the parts (other_parts: drop in a suite, "
        "--other-parts drop without one)."
    )
    trace = imported(tmp_path, row, other_parts="drop")
    assert trace.records[0].messages == (Message("user", "look"),)
    assert counts(trace)["dropped_parts"] == {"image_url": 1}


LEFT_OUT = [
    ("failed", chat_row(1769860800, "hi", status=500), "field status: expected a status below 400, got 500"),
    (
        "failed",
        chat_row(1769860800, "hi", status_code="429"),
        "field status_code: expected a status below 400, got 429",
    ),
    (
        "failed",
        chat_row(1769860800, "hi", status="failed"),
        "field status: expected a request that succeeded, got 'failed'",
    ),
    ("failed", chat_row(1769860800, "hi", error={"message": "x"}), "field error: expected no error"),
    ("without_prompt", {"timestamp": 1769860800, "input": "embed me"}, "expected messages or a prompt, got neither"),
    ("without_prompt", chat_row(1769860800, ""), "field request.messages: expected at least one message with text"),
    ("several_prompts", {"timestamp": 1769860800, "prompt": ["a", "b"]}, "field prompt: expected one prompt, got 2"),
    (
        "prompt_of_token_ids",
        {"timestamp": 1769860800, "prompt": [1, 2]},
        "field prompt: expected a text, got token ids",
    ),
    (
        "without_output_length",
        {"timestamp": 1769860800, "prompt": "a"},
        "expected usage.completion_tokens, the answer's text, or max_tokens in the request; got none of them",
    ),
    ("empty_answer", chat_row(1769860800, "hi", tokens=0), "expected an answer of at least one token"),
]


@pytest.mark.parametrize(("kind", "row", "reason"), LEFT_OUT)
def test_rows_that_are_no_traffic_are_counted_and_strictly_refused(
    tmp_path: Path, kind: str, row: dict[str, Any], reason: str
) -> None:
    good = chat_row(1769860900, "good")
    trace = imported(tmp_path, good, row)
    assert [record.request_id for record in trace.records] == ["line-1"]
    step = trace.steps[0]
    assert step.parameters["left_out"] == {kind: 1}
    assert (step.name, step.rows_in, step.rows_out, step.rows_touched) == ("read log", 2, 1, 1)
    sentence = refusal(tmp_path, good, row, strict=True)
    assert sentence.startswith(f"access.jsonl, line 2: {reason}")
    assert sentence.endswith("mend or remove the row, or read the log without strict.")


def test_a_log_of_which_nothing_is_left_is_refused_with_the_counts(tmp_path: Path) -> None:
    rows = [chat_row(1769860800, "hi", status=500), chat_row(1769860800, "hi", status=500), chat_row(1769860800, "")]
    assert refusal(tmp_path, *rows) == (
        "access.jsonl: none of its 3 rows can be replayed (failed: 2, without prompt: 1); the first one, "
        "line 1: field status: expected a status below 400, got 500."
    )


def wrong(**request: Any) -> dict[str, Any]:
    row = chat_row(1769860801, "hi")
    row["request"] |= request
    return row


HALF = "expected text in whole characters, got half a one "
WRONG = [
    (chat_row(None, "hi"), ", field timestamp: expected the time of the request, got nothing (looked in timestamp, "),
    (
        chat_row("noon", "hi"),
        ", field timestamp: expected a number in s, as the rows before it or the column map say, got ",
    ),
    (chat_row([5], "hi"), ", field timestamp: expected a number in s"),
    (chat_row(-5, "hi"), ", field timestamp: expected a time from 1970 to 2262, got -5."),
    (wrong(messages="hi"), ", field request.messages: expected a list of messages, got a text."),
    (wrong(messages=["hi"]), ", field request.messages.0: expected a message with role and content, got a text."),
    (
        wrong(messages=[{"role": "boss", "content": "x"}]),
        ", field request.messages.0.role: expected one of system, developer, user, assistant, tool, function, got ",
    ),
    (
        wrong(messages=[{"role": "user", "content": 3}]),
        ", field request.messages.0.content: expected a text or a list of parts, got a number.",
    ),
    (wrong(max_tokens=2.5), ", field request.max_tokens: expected a number of tokens from 0 to 10000000, got 2.5."),
    (wrong(n=0), ", field request.n: expected a number of answers from 1 to 10000000, got 0."),
    (
        chat_row(1769860801, "hi", tokens=999_999_999),
        ", field response.usage.completion_tokens: expected a number of tokens from 0 to 10000000, got 999999999.",
    ),
    (chat_row(1769860801, "hi \ud83d"), f", field request.messages.0.content: {HALF}(\\ud83d "),
    (chat_row(1769860801, "hi", answer="\ude00"), f", field response.choices.0.message.content: {HALF}(\\ude00 "),
    (chat_row(1769860801, "hi", id="\ud83d"), f", field id: {HALF}"),
    (chat_row(1769860801, "hi", tags=["a", "\ud83d"]), f", field tags: {HALF}"),
    (wrong(messages=None, prompt="\ud83d"), f", field request.prompt: {HALF}"),
    (
        wrong(messages=[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '"\\ud83d"'}}]}]),
        f", field request.messages.0.content: {HALF}",
    ),
    ("[1]", ": expected one JSON object, got another JSON value."),
    (
        '{"timestamp": 1',
        ": expected one JSON object, got text that is not JSON (Expecting ',' delimiter at column 16); ",
    ),
    ("[" * 100_000, ": expected one JSON object of sensible size and depth."),
]


@pytest.mark.parametrize(("row", "sentence"), WRONG)
def test_a_wrong_field_is_named_with_line_and_expectation(tmp_path: Path, row: Any, sentence: str) -> None:
    assert refusal(tmp_path, chat_row(1769860800, "hi"), row).startswith(f"access.jsonl, line 2{sentence}")


def test_a_small_number_is_no_time_since_1970(tmp_path: Path) -> None:
    assert "so say its unit in a column map, --columns FILE (time: {unit: ms})" in refusal(
        tmp_path, chat_row(12.5, "hi")
    )


def test_what_was_written_is_not_quoted_in_errors(tmp_path: Path) -> None:
    row = wrong(messages=[{"role": "user", "content": {"secret": "my password"}}])
    assert "password" not in refusal(tmp_path, row)


def test_personal_data_is_redacted_unless_told_otherwise(tmp_path: Path) -> None:
    row = chat_row(1769860800, "I am a@x.org")
    trace = imported(tmp_path, row)
    assert trace.records[0].messages == (Message("user", "I am [EMAIL_1]"),)
    assert [step.name for step in trace.steps] == ["read log", "redact"]
    assert trace.steps[1].parameters == {"found": {"EMAIL": 1}}
    kept = imported(tmp_path, row, redact=False)
    assert kept.records[0].messages == (Message("user", "I am a@x.org"),)
    assert [step.name for step in kept.steps] == ["read log"]


def test_our_own_format_is_redacted_only_when_asked(tmp_path: Path) -> None:
    row = {"id": "a", "offset": 0, "prompt": "I am a@x.org", "max_tokens": 3}
    assert imported(tmp_path, row).records[0].prompt_text == "I am a@x.org"
    assert imported(tmp_path, row, redact=True).records[0].prompt_text == "I am [EMAIL_1]"


def test_a_request_for_several_answers_is_one_of_their_mean_length(tmp_path: Path) -> None:
    row = chat_row(1769860800, "hi", tokens=10)
    row["request"]["n"] = 4
    trace = imported(tmp_path, row)
    assert trace.records[0].max_tokens == 3
    assert counts(trace)["requests_for_several_answers"] == 1
