"""The texts of OpenTelemetry spans, in each way in which instrumentations record them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.traffic.log_files import write_log
from tests.traffic.span_files import batch, said, span, without

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.reader import ImportedTrace, import_trace
from quantgate.traces.record import Message
from quantgate_engine.errors import ConfigurationError

HI = Message("user", "hi")
ASKED = [said("user", "hi")]


def imported(tmp_path: Path, *rows: dict[str, Any], **settings: Any) -> ImportedTrace:
    return import_trace(write_log(tmp_path / "spans.jsonl", *rows), ImportSettings(**settings))


def refusal(tmp_path: Path, row: dict[str, Any], **settings: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        imported(tmp_path, row, **settings)
    return str(caught.value).removeprefix(f"{tmp_path}/spans.jsonl, line 1, field ")


def plain(**attributes: Any) -> dict[str, Any]:
    """A span that does not tell its answer's length but by its text."""
    return without(span("a", **attributes), "gen_ai.usage.output_tokens")


def indexed(which: str, **values: Any) -> dict[str, Any]:
    return {f"{which}.{name[1:].replace('_', '.', 1)}": value for name, value in values.items()}


def with_events(*events: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return plain() | {"events": [{"name": name, "attributes": attributes} for name, attributes in events]}


CHAT = [{"role": "user", "content": "hi"}]
ANSWER = [{"role": "assistant", "content": "12345678"}]
DETAILS = "gen_ai.client.inference.operation.details"
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("structured", plain(input__messages=ASKED, output__messages=[said("assistant", "12345678")])),
    (
        "JSON text",
        plain(input__messages=json.dumps(ASKED), output__messages=json.dumps([said("assistant", "12345678")])),
    ),
    ("chat messages", plain(input__messages=CHAT, output__messages=ANSWER)),
    ("parts as texts", plain(input__messages=[{"role": "human", "parts": ["hi"]}], output__messages=ANSWER)),
    (
        "indexed",
        plain(**indexed("prompt", _0_role="user", _0_content="hi"), **indexed("completion", _0_content="12345678")),
    ),
    (
        "indexed parts",
        plain(
            **indexed("prompt", _0_role="user", _0_content='[{"type": "text", "text": "hi"}]'),
            **indexed("completion", _0_role="assistant", _0_content="12345678"),
        ),
    ),
    ("JSON in one attribute", plain(prompt=json.dumps(CHAT), completion=json.dumps(ANSWER))),
    ("JSON of a request", plain(prompt=json.dumps({"messages": CHAT}), completion="12345678")),
    ("JSON of one message", plain(prompt=json.dumps(CHAT[0]), completion=json.dumps(ANSWER[0]))),
    (
        "events of contents",
        with_events(
            ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(CHAT)}),
            ("gen_ai.content.completion", {"gen_ai.completion": json.dumps(ANSWER)}),
        ),
    ),
    ("details", with_events((DETAILS, {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": ANSWER}))),
    (
        "events",
        with_events(("gen_ai.user.message", {"content": "hi"}), ("gen_ai.choice", {"message": json.dumps(ANSWER[0])})),
    ),
    (
        "events in JSON",
        with_events(
            ("gen_ai.user.message", {"gen_ai.event.content": json.dumps(CHAT[0])}),
            ("gen_ai.choice", {"gen_ai.event.content": json.dumps({"index": 0, "message": ANSWER[0]})}),
        ),
    ),
    (
        "events with Bedrock's parts",
        with_events(
            ("gen_ai.user.message", {"content": '[{"text": "hi"}]'}),
            ("gen_ai.choice", {"message": '[{"text": "12345678"}]'}),
        ),
    ),
    (
        "events in texts",
        with_events(("gen_ai.user.message", {"content": "hi"}), ("gen_ai.choice", {"message": "12345678"})),
    ),
]


@pytest.mark.parametrize("form", ["single", "batch"])
@pytest.mark.parametrize("row", [way[1] for way in WAYS], ids=[way[0] for way in WAYS])
def test_texts_are_read_however_they_were_recorded(tmp_path: Path, row: dict[str, Any], form: str) -> None:
    [record] = (trace := imported(tmp_path, batch(row) if form == "batch" else row)).records
    assert record.messages == (HI,)
    assert record.max_tokens == 2
    assert trace.steps[0].parameters["output_lengths_from"] == {"answer_characters": 1}


@pytest.mark.parametrize("text", ["hi", '{"a": 1}', "[1, 2]", "{name}, hi"])
def test_a_prompt_that_is_no_list_of_messages_is_a_text(tmp_path: Path, text: str) -> None:
    [record] = imported(tmp_path, span("a", prompt=text)).records
    assert (record.messages, record.prompt_text) == (None, text)


@pytest.mark.parametrize(
    "instructions", [[{"type": "text", "content": "be brief"}], '[{"type": "text", "content": "be brief"}]', "be brief"]
)
def test_instructions_are_the_systems_message(tmp_path: Path, instructions: Any) -> None:
    [record] = imported(tmp_path, span("a", input__messages=ASKED, system_instructions=instructions)).records
    assert record.messages == (Message("system", "be brief"), HI)


def test_tools_calls_and_results_are_kept(tmp_path: Path) -> None:
    asked = [
        *ASKED,
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"},
                                        {"type": "text", "content": "let me see"},
                                        {"type": "tool_call", "id": "1", "name": "w", "arguments": {"city": "Oslo"}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "result": "rainy"},
                                   {"type": "tool_call_response", "id": "2", "response": {"t": 3}}]},
    ]  # fmt: skip
    trace = imported(tmp_path, span("a", input__messages=asked, tool__definitions=[{"name": "w"}]))
    assert trace.records[0].messages == (
        HI,
        Message("assistant", 'let me see\n[{"name": "w", "arguments": {"city": "Oslo"}}]'),
        Message("tool", 'rainy\n{"t": 3}'),
    )
    assert trace.steps[0].parameters["dropped_parts"] == {"reasoning": 1}
    assert trace.steps[0].parameters["requests_that_offered_tools"] == 1


def test_indexed_tool_calls_and_tool_events_are_kept(tmp_path: Path) -> None:
    call = {"prompt.1.tool_calls.0.name": "w", "prompt.1.tool_calls.0.arguments": '{"city": "Oslo"}'}
    row = span("a", **indexed("prompt", _0_role="user", _0_content="hi", _1_role="assistant"), **call)
    said_by_assistant = Message("assistant", '[{"name": "w", "arguments": {"city": "Oslo"}}]')
    assert imported(tmp_path, row).records[0].messages == (HI, said_by_assistant)
    calls = [{"id": "1", "type": "function", "function": {"name": "w", "arguments": '{"city": "Oslo"}'}}]
    events = with_events(
        ("gen_ai.user.message", {"content": "hi"}),
        ("gen_ai.assistant.message", {"tool_calls": json.dumps(calls)}),
        ("gen_ai.tool.message", {"content": "rainy", "id": "1"}),
        ("gen_ai.choice", {"message": "x"}),
    )
    assert imported(tmp_path, events).records[0].messages == (HI, said_by_assistant, Message("tool", "rainy"))


def test_events_without_contents_leave_the_lengths(tmp_path: Path) -> None:
    row = span("a") | {
        "events": [{"name": "gen_ai.user.message", "attributes": {}}, {"name": "gen_ai.choice", "attributes": {}}]
    }
    [record] = imported(tmp_path, row).records
    assert (record.messages, record.prompt_token_count, record.max_tokens) == (None, 10, 3)


def test_other_parts_are_refused_or_dropped_and_counted(tmp_path: Path) -> None:
    row = span(
        "a",
        input__messages=[
            {"role": "user", "parts": [{"type": "text", "content": "hi"}, {"type": "blob", "content": ""}]}
        ],
    )
    assert refusal(tmp_path, row).startswith(
        "attributes.gen_ai.input.messages.0.parts.1: expected a part of type text, got 'blob', which is no text to "
    )
    trace = imported(tmp_path, row, other_parts="drop")
    assert trace.records[0].messages == (HI,)
    assert trace.steps[0].parameters["dropped_parts"] == {"blob": 1}


def test_personal_data_is_redacted_unless_told_otherwise(tmp_path: Path) -> None:
    row = span("a", input__messages=[said("user", "I am a@x.org")])
    assert imported(tmp_path, row).records[0].messages == (Message("user", "I am [EMAIL_1]"),)
    assert imported(tmp_path, row, redact=False).records[0].messages == (Message("user", "I am a@x.org"),)


MESSAGES = "attributes.gen_ai.input.messages"
NO_JSON = "expected messages as JSON, got a text that is none; where texts were cut off, raise OTEL_ATTRIBUTE_VALUE_"
WRONG: list[tuple[dict[str, Any], str]] = [
    (span("a", input__messages='[{"role": "user", "par'), f"{MESSAGES}: {NO_JSON}"),
    (span("a", prompt="[{'role': 'user', 'content': 'secret'}]"), f"attributes.gen_ai.prompt: {NO_JSON}"),
    (span("a", prompt=3), "attributes.gen_ai.prompt: expected a text or a list of messages, got another value."),
    (span("a", input__messages={"role": "user"}), f"{MESSAGES}: expected a list of messages, got an object."),
    (span("a", input__messages=["secret"]), f"{MESSAGES}.0: expected a message with a role and parts, got a text."),
    (
        span("a", input__messages=[{"role": "user", "parts": "secret"}]),
        f"{MESSAGES}.0.parts: expected a list of parts, got a ",
    ),
    (
        span("a", input__messages=[{"role": "user", "parts": [3]}]),
        f"{MESSAGES}.0.parts.0: expected a part with a type, got a ",
    ),
    (
        span("a", input__messages=[{"role": "user", "parts": [{"type": "text", "content": 3}]}]),
        f"{MESSAGES}.0.parts.0.content: expected a text, got a number.",
    ),
    (span("a", input__messages=[{"role": "boss", "parts": []}]), f"{MESSAGES}.0.role: expected one of system, "),
    (span("a", input__messages=[{"parts": []}]), f"{MESSAGES}.0.role: expected one of system, "),
    (
        span("a", input__messages=[{"role": "user", "content": 3}]),
        f"{MESSAGES}.0.content: expected a text or a list of parts, ",
    ),
    (span("a", input__messages=[said("user", "\ud83d")]), f"{MESSAGES}.0.content: expected text in whole characters, "),
    (span("a", prompt="\ud83d"), "attributes.gen_ai.prompt: expected text in whole characters, "),
    (span("a", conversation__id="\ud83d"), "attributes.gen_ai.conversation.id: expected text in whole characters, "),
    (
        span("a", **indexed("prompt", _0_role="user", _0_content="hi", _2_role="user", _2_content="ho")),
        "attributes.gen_ai.prompt.1: expected a message, as a later one is there, got nothing; where attributes ",
    ),
    (span("a", **indexed("prompt", _0_content="hi")), "attributes.gen_ai.prompt.0.role: expected one of system, "),
    (
        with_events(("gen_ai.user.message", {"gen_ai.event.content": '{"content": "secr'})),
        f"events.0.attributes.gen_ai.event.content: {NO_JSON}",
    ),
]


@pytest.mark.parametrize(("row", "sentence"), WRONG)
def test_wrong_texts_are_named_by_their_field_and_never_quoted(
    tmp_path: Path, row: dict[str, Any], sentence: str
) -> None:
    told = refusal(tmp_path, row)
    assert told.startswith(sentence)
    assert "secr" not in told
