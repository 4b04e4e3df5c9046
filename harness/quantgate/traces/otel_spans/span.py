"""Spans of one line: an export batch of the collector's, a list of spans, or one span as SDKs print it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from quantgate.traces.kind_of_value import kind_of
from quantgate.traces.openai_log.lookup import first_present
from quantgate.traces.otel_spans.attributes import attributes_of

_OTHER_EXPORTS = {"resourceLogs": "logs", "resourceMetrics": "metrics"}
_STARTS = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
_ENDS = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")

# All that a request is read from; what else a span says is not looked into.
_WANTED = ("gen_ai.", "llm.", "error.type", "user.id", "enduser.id")


@dataclass(frozen=True, slots=True)
class Event:
    """field: where it stands in its span."""

    field: str
    name: str
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """start, end: the field's name and its value, as yet unread; ("", None) where the span has none."""

    trace_id: str | None
    span_id: str | None
    parent_id: str | None
    start: tuple[str, Any]
    end: tuple[str, Any]
    status: Any
    attributes: dict[str, Any]
    raw_events: Any

    def events(self) -> list[Event]:
        """Raises ValueError, which begins with the field, for what is no list of events."""
        events = [] if self.raw_events is None else self.raw_events
        if not isinstance(events, list):
            raise ValueError(f"field events: expected a list of events, got {kind_of(events)}")
        found = []
        for index, event in enumerate(events):
            if not isinstance(event, dict):
                raise ValueError(f"field events.{index}: expected an event, got {kind_of(event)}")
            field = f"events.{index}.attributes"
            found.append(Event(field, str(event.get("name")), attributes_of(event.get("attributes"), field)))
        return found


def is_batch(row: dict[str, Any]) -> bool:
    return "resourceSpans" in row or "spans" in row


def raw_spans_of(row: dict[str, Any]) -> list[Any]:
    """The spans of a batch in its order, or the row itself. Raises ValueError, which begins with the field."""
    if is_batch(row):
        return list(_batch(row))
    for name, called in _OTHER_EXPORTS.items():
        if name in row:
            raise ValueError(f"field {name}: expected resourceSpans, an export of spans, got one of {called}")
    if "attributes" not in row:
        raise ValueError(
            "field resourceSpans: expected an export of spans, or one span with its attributes; got neither"
        )
    return [row]


def span_of(raw: Any) -> Span:
    """Raises ValueError, which begins with the field, for what is no span."""
    if not isinstance(raw, dict):
        raise ValueError(f"field spans: expected a span, got {kind_of(raw)}")
    return Span(
        trace_id=_id(raw, "traceId", "trace_id", "context.trace_id", "context.traceId"),
        span_id=_id(raw, "spanId", "span_id", "context.span_id", "context.spanId"),
        parent_id=_id(raw, "parentSpanId", "parent_span_id", "parent_id"),
        start=first_present(raw, _STARTS),
        end=first_present(raw, _ENDS),
        status=raw.get("status", raw.get("status_code")),
        attributes=attributes_of(raw.get("attributes"), "attributes", _WANTED),
        raw_events=raw.get("events"),
    )


def _batch(row: dict[str, Any]) -> Iterator[Any]:
    if "resourceSpans" not in row:
        yield from _spans_in(row, "")
    for resource, field in _entries(row, "resourceSpans", ""):
        # What scopeSpans were called before OTLP 0.15.
        inner = "scopeSpans" if "scopeSpans" in resource else "instrumentationLibrarySpans"
        for scope, place in _entries(resource, inner, f"{field}."):
            yield from _spans_in(scope, f"{place}.")


def _spans_in(holder: dict[str, Any], prefix: str) -> list[Any]:
    spans = holder.get("spans", [])
    if not isinstance(spans, list):
        raise ValueError(f"field {prefix}spans: expected a list of spans, got {kind_of(spans)}")
    return spans


def _entries(holder: dict[str, Any], name: str, prefix: str) -> Iterator[tuple[dict[str, Any], str]]:
    entries = holder.get(name, [])
    if not isinstance(entries, list):
        raise ValueError(f"field {prefix}{name}: expected a list, got {kind_of(entries)}")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise ValueError(f"field {prefix}{name}.{index}: expected an object, got {kind_of(entry)}")
        yield entry, f"{prefix}{name}.{index}"


def _id(raw: dict[str, Any], *paths: str) -> str | None:
    path, value = first_present(raw, paths)
    if not path or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"field {path}: expected an id, got {kind_of(value)}")
    return str(value).removeprefix("0x")
