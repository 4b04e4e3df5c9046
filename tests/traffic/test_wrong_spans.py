"""OpenTelemetry spans that are wrong: each is refused with line, span, field, what was expected and what was found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.traffic.log_files import write_log
from tests.traffic.span_files import START_NS, batch, span

from quantgate.traces.reader import read_trace
from quantgate_engine.errors import ConfigurationError


def refusal(tmp_path: Path, *rows: dict[str, Any] | str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read_trace(write_log(tmp_path / "spans.jsonl", *rows))
    sentence = str(caught.value)
    assert sentence.isprintable()
    assert len(sentence) < 400 + len(str(tmp_path))
    return sentence.removeprefix(f"{tmp_path}/")


def with_attribute(key: str, value: Any) -> dict[str, Any]:
    """A batch whose second span has the attribute, written as it stands."""
    made = batch(span("x"), span("b"))
    attributes = made["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["attributes"]
    attributes[:] = [each for each in attributes if each["key"] != key] + [{"key": key, "value": value}]
    return made


def changed(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in (span("b") | fields).items() if value is not None}


TOKENS = "gen_ai.usage.output_tokens"
PLACE = ", span 2, field attributes.3.value"
WRONG: list[tuple[Any, str]] = [
    ('{"resourceSpans": [', ": expected one JSON object, got text that is not JSON (Expecting value at column 20); "),
    ("[1]", ": expected one JSON object, got another JSON value."),
    ({"resourceSpans": {}}, ", field resourceSpans: expected a list, got an object."),
    ({"resourceSpans": [3]}, ", field resourceSpans.0: expected an object, got a number."),
    ({"resourceSpans": [{"scopeSpans": "x"}]}, ", field resourceSpans.0.scopeSpans: expected a list, got a text."),
    (
        {"resourceSpans": [{"scopeSpans": [{"spans": {}}]}]},
        ", field resourceSpans.0.scopeSpans.0.spans: expected a list of ",
    ),
    ({"resourceSpans": [{"scopeSpans": [{"spans": [1]}]}]}, ", span 1, field spans: expected a span, got a number."),
    ({"spans": 3}, ", field spans: expected a list of spans, got a number."),
    ({"resourceLogs": []}, ", field resourceLogs: expected resourceSpans, an export of spans, got one of logs."),
    (
        {"resourceMetrics": []},
        ", field resourceMetrics: expected resourceSpans, an export of spans, got one of metrics.",
    ),
    (
        {"name": "chat"},
        ", field resourceSpans: expected an export of spans, or one span with its attributes; got neither.",
    ),
    (changed(attributes=3), ", field attributes: expected a list of attributes or an object, got a number."),
    (changed(attributes=[3]), ", field attributes.0: expected an attribute with key and value, got a number."),
    (changed(context={"span_id": []}), ", field context.span_id: expected an id, got a list."),
    (changed(events={}), ", field events: expected a list of events, got an object."),
    (changed(events=[3]), ", field events.0: expected an event, got a number."),
    (
        changed(events=[{"name": "x", "attributes": "y"}]),
        ", field events.0.attributes: expected a list of attributes or ",
    ),
    (with_attribute(TOKENS, {"intValue": "many"}), f"{PLACE}.intValue: expected a 64-bit integer, got 'many'."),
    (with_attribute(TOKENS, {"intValue": 2.5}), f"{PLACE}.intValue: expected a 64-bit integer, got 2.5."),
    (with_attribute(TOKENS, {"stringValue": 3}), f"{PLACE}.stringValue: expected a text, got a number."),
    (with_attribute(TOKENS, {"boolValue": 3}), f"{PLACE}.boolValue: expected true or false, got a number."),
    (with_attribute(TOKENS, {"doubleValue": []}), f"{PLACE}.doubleValue: expected a number, got a list."),
    (with_attribute(TOKENS, {"arrayValue": {"values": 3}}), f"{PLACE}.arrayValue: expected a list, got a number."),
    (with_attribute(TOKENS, {"kvlistValue": []}), f"{PLACE}.kvlistValue: expected an object, got a list."),
    (with_attribute(TOKENS, {"longValue": 3}), f"{PLACE}: expected one of stringValue, intValue, "),
    (with_attribute(TOKENS, 3), f"{PLACE}: expected an object with one of stringValue, intValue, "),
    (
        {
            "resourceSpans": [
                {
                    "scopeSpans": [
                        {
                            "spans": [
                                {"attributes": [{"key": "gen_ai.a", "value": {}}, {"key": "gen_ai.a", "value": {}}]}
                            ]
                        }
                    ]
                }
            ]
        },
        ", span 1, field attributes.1.key: expected a key that stands once, got 'gen_ai.a' again.",
    ),
    (
        span("b", usage__output_tokens=-1),
        f", field attributes.{TOKENS}: expected a number of tokens from 0 to 10000000, got -1.",
    ),
    (span("b", usage__output_tokens=10**9), f", field attributes.{TOKENS}: expected a number of tokens from 0 to "),
    (
        span("b", request__max_tokens="many"),
        ", field attributes.gen_ai.request.max_tokens: expected a number of tokens ",
    ),
    (
        span("b", request__choice__count=0),
        ", field attributes.gen_ai.request.choice.count: expected a number of answers ",
    ),
    (changed(start_time=None), ", field start_time: expected the time at which the span began, got nothing."),
    (changed(start_time="noon"), ", field start_time: expected a time such as 2026-01-31T12:00:00.5Z, got 'noon'."),
    (
        changed(start_time=[1, 2]),
        ", field start_time: expected a number in ns, as the rows before it or the column map say, ",
    ),
    (changed(start_time=-5), ", field start_time: expected a time from 1970 to 2262, got -5."),
    (changed(start_time=None, startTimeUnixNano="x"), ", field startTimeUnixNano: expected a number in ns, "),
    (
        changed(end_time=START_NS - 1),
        f", field end_time: expected a time not before the span's start, got {START_NS - 1}.",
    ),
    (span("a"), ", field id: expected an id that no other row has, got 'a', which line 1 has already."),
]


@pytest.mark.parametrize(("row", "sentence"), WRONG)
def test_a_wrong_field_is_named_with_line_span_and_expectation(tmp_path: Path, row: Any, sentence: str) -> None:
    assert refusal(tmp_path, span("a"), row).startswith(f"spans.jsonl, line 2{sentence}")


@pytest.mark.parametrize(
    ("first", "second", "with_or_without"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:01", "with"),
        ("2026-01-31 12:00:00", "2026-01-31T12:00:01+01:00", "without"),
    ],
)
def test_dates_with_and_without_a_zone_do_not_mix(
    tmp_path: Path, first: str, second: str, with_or_without: str
) -> None:
    rows = [changed(start_time=time, end_time=None) for time in (first, second)]
    assert refusal(tmp_path, *rows) == (
        f"spans.jsonl, line 2, field start_time: expected a time {with_or_without} a zone, as the times before it are "
        f"written, got '{second}'."
    )


def test_attributes_nested_beyond_all_measure_are_refused(tmp_path: Path) -> None:
    nested = '{"arrayValue": {"values": [' * 400 + "{}" + "]}}" * 400
    row = json.dumps(with_attribute("gen_ai.input.messages", "nested")).replace('"nested"', nested)
    sentence = refusal(tmp_path, span("a"), row)
    assert sentence.startswith("spans.jsonl, line 2")
