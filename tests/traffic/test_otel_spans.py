"""OpenTelemetry spans: both forms, times, sessions, what is no request, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.traffic.log_files import write_log
from tests.traffic.records import SECOND
from tests.traffic.span_files import START_NS, batch, otlp_value, said, span, without

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.reader import ImportedTrace, import_trace
from quantgate.traces.record import Message, TraceRecord
from quantgate.traces.registry import trace_formats
from quantgate_engine.errors import ConfigurationError


def imported(tmp_path: Path, *rows: dict[str, Any] | str, **settings: Any) -> ImportedTrace:
    return import_trace(write_log(tmp_path / "spans.jsonl", *rows), ImportSettings(**settings))


def refusal(tmp_path: Path, *rows: dict[str, Any] | str, **settings: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        imported(tmp_path, *rows, **settings)
    sentence = str(caught.value)
    assert sentence.isprintable()
    assert len(sentence) < 400 + len(str(tmp_path))
    return sentence.removeprefix(f"{tmp_path}/")


def counts(trace: ImportedTrace) -> dict[str, Any]:
    return trace.steps[0].parameters


@pytest.mark.parametrize("form", ["single", "batch"])
def test_both_forms_give_the_same_requests_in_order_of_their_start(tmp_path: Path, form: str) -> None:
    asked = [said("system", "be brief"), said("user", "hi")]
    spans = [
        span("b", 2.5, request__max_tokens=50, usage__output_tokens=7),
        span("a", input__messages=asked, output__messages=[said("assistant", "ho")]),
        span("c", 3, operation__name="text_completion", prompt="Once"),
    ]
    trace = imported(tmp_path, *([batch(*spans[:2]), batch(spans[2])] if form == "batch" else spans))
    messages = (Message("system", "be brief"), Message("user", "hi"))
    assert trace.records == [
        TraceRecord("a", 0, 3, messages=messages, prompt_token_count=10),
        TraceRecord("b", 5 * SECOND // 2, 7, prompt_token_count=10, limit_tokens=50),
        TraceRecord("c", 3 * SECOND, 3, prompt_text="Once", prompt_token_count=10),
    ]
    step = trace.steps[0]
    assert (step.name, step.rows_in, step.rows_out, step.rows_touched) == ("read spans", 3, 3, 0)
    assert step.parameters["shape"] == ("OTLP" if form == "batch" else "spans")
    assert step.parameters["out_of_order"] == 1
    assert step.parameters["output_lengths_from"] == {"usage": 3}


def test_scopes_of_older_exports_are_read(tmp_path: Path) -> None:
    old = batch(span("a"))
    [resource] = old["resourceSpans"]
    resource["instrumentationLibrarySpans"] = resource.pop("scopeSpans")
    assert len(imported(tmp_path, old).records) == 1


def test_a_list_of_spans_is_a_batch(tmp_path: Path) -> None:
    dump = {"trace_id": "x", "spans": [span("a"), span("b", 1, operation__name="plan"), span("c", 2)]}
    trace = imported(tmp_path, dump)
    assert [record.request_id for record in trace.records] == ["a", "c"]
    assert (
        refusal(tmp_path, {"spans": [3]}) == "spans.jsonl, line 1, span 1, field spans: expected a span, got a number."
    )


OLD = {"gen_ai.request.model": "m", "gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 3}
OLDEST = {
    "llm.request.type": "chat", "llm.usage.prompt_tokens": 10, "llm.usage.completion_tokens": 3,
    "llm.request.max_tokens": 50,
}  # fmt: skip
NESTED = {"gen_ai": {"operation": {"name": "chat"}, "usage": {"input_tokens": "10", "output_tokens": 3}}}


@pytest.mark.parametrize("attributes", [OLD, OLD | {"gen_ai.operation.name": "chat"}, OLDEST, NESTED])
def test_older_names_are_read(tmp_path: Path, attributes: dict[str, Any]) -> None:
    limit = attributes.get("llm.request.max_tokens")
    trace = imported(tmp_path, span("a") | {"attributes": attributes})
    assert trace.records == [TraceRecord("a", 0, 3, prompt_token_count=10, limit_tokens=limit)]


def test_a_span_without_an_operation_is_told_by_its_model_and_prompt(tmp_path: Path) -> None:
    attributes = {"gen_ai.request.model": "m", "gen_ai.prompt": "Once", "gen_ai.request.max_tokens": 50}
    trace = imported(tmp_path, span("a") | {"attributes": attributes})
    assert trace.records == [TraceRecord("a", 0, 50, prompt_text="Once", limit_tokens=50)]
    assert counts(trace)["output_lengths_from"] == {"limit": 1}


@pytest.mark.parametrize(
    ("names", "start", "end"),
    [
        (("start_time", "end_time"), "2026-01-31T12:00:00.25Z", "2026-01-31T12:00:01Z"),
        (("start_time", "end_time"), "2026-01-31T13:00:00.25+01:00", "2026-01-31T12:00:01Z"),
        (("start_time", "end_time"), "2026-01-31 12:00:00.25", "2026-01-31 12:00:01"),
        (("startTime", "endTime"), 1769860800_250, 1769860801_000),
        (("start_time_unix_nano", "end_time_unix_nano"), START_NS + SECOND // 4, START_NS + SECOND),
        (("startTimeUnixNano", "endTimeUnixNano"), str(START_NS + SECOND // 4), str(START_NS + SECOND)),
    ],
)
def test_times_are_dates_or_numbers(tmp_path: Path, names: tuple[str, str], start: Any, end: Any) -> None:
    def timed(row: dict[str, Any], start: Any, end: Any) -> dict[str, Any]:
        return {key: value for key, value in row.items() if key[-4:] != "time"} | {names[0]: start, names[1]: end}

    first = timed(span("a", conversation__id="s"), start, end)
    second = span("b", 3, conversation__id="s")
    if isinstance(start, int):
        second = timed(second, (START_NS + 3 * SECOND) * start // (START_NS + SECOND // 4), None)
    elif "-" in start:
        second = timed(second, start.replace("00:00.25", "00:03"), None)
    one, two = imported(tmp_path, first, second).records
    assert (one.scheduled_ns, two.scheduled_ns) == (0, pytest.approx(2.75 * SECOND, abs=1_000_000))
    assert two.think_time_ns == pytest.approx(2 * SECOND, abs=1_000_000)


def test_a_conversation_is_a_session_and_thinks_from_the_answers_end(tmp_path: Path) -> None:
    trace = imported(
        tmp_path,
        span("a", conversation__id="anna@x.org"),
        span("x", 1),
        span("b", 4, conversation__id="anna@x.org"),
        span("c", 4.5, conversation__id="anna@x.org"),
    )
    places = {record.request_id: (record.session_id, record.turn, record.think_time_ns) for record in trace.records}
    assert places == {
        "a": ("session-000001", 1, 0),
        "x": (None, 1, 0),
        "b": ("session-000001", 2, 3 * SECOND),
        "c": ("session-000001", 3, 0),
    }
    assert (counts(trace)["sessions_given"], counts(trace)["overlapping_turns"]) == (1, 1)


def test_sessions_are_found_from_continued_messages_of_the_same_user(tmp_path: Path) -> None:
    asked = [said("user", "hi")]
    again = [*asked, said("assistant", "ho"), said("user", "how?")]
    first = span("a", input__messages=asked, output__messages=[said("assistant", "ho")])
    second = span("b", 3, input__messages=json.dumps(again))
    trace = imported(tmp_path, first, second)
    assert [(record.session_id, record.turn) for record in trace.records] == [
        ("session-000001", 1),
        ("session-000001", 2),
    ]
    assert counts(trace)["sessions_inferred"] == 1
    for row, user in ((first, "anna"), (second, "bob")):
        row["attributes"]["user.id"] = user
    assert counts(imported(tmp_path, first, second))["sessions_inferred"] == 0


def test_spans_that_are_no_request_are_counted_by_kind_and_never_refused(tmp_path: Path) -> None:
    tool = span("t", operation__name="execute_tool")
    http = span("h") | {"attributes": {"http.method": "POST", "http.status_code": 200}, "start_time": "broken"}
    rerank = span("r") | {"attributes": {"llm.request.type": "rerank", "llm.usage.completion_tokens": 3}}
    agent = span("g", operation__name="invoke_agent")
    trace = imported(tmp_path, batch(tool, span("a"), tool), http, rerank, agent, strict=True)
    assert [record.request_id for record in trace.records] == ["a"]
    assert counts(trace)["left_out"] == {"execute_tool": 2, "no_model_request": 1, "rerank": 1, "invoke_agent": 1}
    assert (trace.steps[0].rows_in, trace.steps[0].rows_out) == (6, 1)


def test_a_request_that_two_instrumentations_recorded_is_replayed_once(tmp_path: Path) -> None:
    outer, inner, innermost = span("a"), span("b") | {"parent_id": "0xa"}, span("c") | {"parent_id": "0xb"}
    other_trace = span("d") | {"parent_id": "0xa"}
    other_trace["context"] |= {"trace_id": "0xbb"}
    agent = span("e", operation__name="invoke_agent")
    of_agent = span("f") | {"parent_id": "0xe"}
    trace = imported(tmp_path, innermost, inner, outer, other_trace, of_agent, agent)
    assert {record.request_id for record in trace.records} == {"a", "d", "f"}
    assert counts(trace)["left_out"] == {"inside_another_request": 2, "invoke_agent": 1}


LENGTHS = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
LEFT_OUT: list[tuple[str, dict[str, Any], str]] = [
    (
        "failed",
        span("b") | {"status": {"status_code": "ERROR"}},
        "field status: expected a request that succeeded, got 'ERROR'",
    ),
    ("failed", span("b") | {"status": "STATUS_CODE_ERROR"}, "field status: expected a request that succeeded, got "),
    (
        "failed",
        span("b") | {"attributes": span("b")["attributes"] | {"error.type": "timeout"}},
        "field attributes.error.type: ",
    ),
    (
        "failed",
        span("b", response__finish_reasons=["error"]),
        "field attributes.gen_ai.response.finish_reasons: expected ",
    ),
    (
        "without_prompt",
        without(span("b"), LENGTHS[0]),
        "expected messages, a prompt or gen_ai.usage.input_tokens; got ",
    ),
    (
        "without_output_length",
        without(span("b"), LENGTHS[1]),
        "expected gen_ai.usage.output_tokens, the answer's text, or gen_ai.request.max_tokens; got none of them",
    ),
    ("empty_answer", span("b", usage__output_tokens=0), "expected an answer of at least one token"),
]


@pytest.mark.parametrize(("kind", "row", "reason"), LEFT_OUT)
def test_requests_that_are_no_traffic_are_counted_and_strictly_refused(
    tmp_path: Path, kind: str, row: dict[str, Any], reason: str
) -> None:
    trace = imported(tmp_path, span("a"), row)
    assert [record.request_id for record in trace.records] == ["a"]
    assert counts(trace)["left_out"] == {kind: 1}
    sentence = refusal(tmp_path, span("a"), row, strict=True)
    assert sentence.startswith(f"spans.jsonl, line 2: {reason}")
    assert sentence.endswith("; mend or remove the span, or read the file without strict.")


def test_a_failed_span_of_a_batch_is_left_out(tmp_path: Path) -> None:
    failed = span("b") | {"status": {"status_code": "ERROR"}}
    assert counts(imported(tmp_path, batch(span("a"), failed)))["left_out"] == {"failed": 1}
    assert refusal(tmp_path, batch(span("a"), failed), strict=True).startswith(
        "spans.jsonl, line 1, span 2: field status: "
    )


def test_a_file_without_any_request_is_refused_with_the_counts(tmp_path: Path) -> None:
    assert refusal(tmp_path, span("a", operation__name="embeddings")) == (
        "spans.jsonl: none of its 1 spans can be replayed (embeddings: 1); the first one, line 1: expected a request "
        "to a model that answers in text."
    )
    assert "(a\\nb\\ud83dcc" in refusal(tmp_path, span("a", operation__name="a\nb\ud83d" + "c" * 5000))
    assert refusal(tmp_path, batch()) == "spans.jsonl: expected spans that can be replayed, got none."


def test_an_end_that_is_not_known_is_left_open(tmp_path: Path) -> None:
    rows = [span("a", conversation__id="s") | {"end_time": 0}, span("b", 3, conversation__id="s")]
    trace = imported(tmp_path, *rows)
    assert trace.records[1].think_time_ns == 3 * SECOND
    assert counts(trace)["think_times_from_start"] == 1


def test_several_answers_are_one_request_of_their_mean_length(tmp_path: Path) -> None:
    trace = imported(
        tmp_path,
        span("a", usage__output_tokens=10, request__choice__count=4),
        span("b", 1, usage__output_tokens=10, output__messages=[said("assistant", "x"), said("assistant", "y")]),
    )
    assert [record.max_tokens for record in trace.records] == [3, 5]
    assert counts(trace)["requests_for_several_answers"] == 2


def test_values_of_otlp_are_those_of_plain_spans(tmp_path: Path) -> None:
    parts = {"type": "tool_call", "name": "f", "arguments": {"n": 1.5, "ok": True, "none": None, "list": [1, "x"]}}
    asked = [said("user", "hi"), {"role": "assistant", "parts": [parts]}]
    assert otlp_value(None) == {}
    plain = imported(tmp_path, span("a", input__messages=asked)).records
    assert imported(tmp_path, batch(span("a", input__messages=asked))).records == plain


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (batch(span("a")), "otel-spans"),
        (span("a"), "otel-spans"),
        ({"resourceLogs": []}, "otel-spans"),
        ({"start_time": "2026-01-31T12:00:00Z", "attributes": {}, "messages": []}, "openai-log"),
        ({"id": "x", "timestamp": 1, "conversations": []}, "sharegpt-json"),
        ({"id": "x", "offset": 0, "attributes": {}, "span_id": "y"}, "quantgate-jsonl"),
        ({"id": "x", "offset": 0, "conversations": []}, "quantgate-jsonl"),
        ({"conversations": "x", "messages": []}, "openai-log"),
    ],
)
def test_exactly_one_format_tells_itself_by_the_first_line(row: dict[str, Any], told: str) -> None:
    assert [name for name, each in trace_formats().items() if each.recognises(json.dumps(row))] == [told]
