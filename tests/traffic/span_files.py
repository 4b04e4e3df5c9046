"""Short spellings of OpenTelemetry spans for tests."""

from __future__ import annotations

from typing import Any

START_NS = 1_769_860_800_000_000_000


def span(span_id: str, at_s: float = 0, *, lasts_s: float = 1, **attributes: Any) -> dict[str, Any]:
    """A chat with its lengths, as SDKs print spans; attributes by their names behind `gen_ai.`, `__` for a dot."""
    start = START_NS + round(at_s * 1e9)
    named = {f"gen_ai.{name.replace('__', '.')}": value for name, value in attributes.items() if value is not None}
    return {
        "name": "chat m",
        "context": {"trace_id": "0xaa", "span_id": f"0x{span_id}", "trace_state": "[]"},
        "kind": "SpanKind.CLIENT",
        "parent_id": None,
        "start_time": start,
        "end_time": start + round(lasts_s * 1e9),
        "status": {"status_code": "UNSET"},
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.output_tokens": 3,
        }
        | named,
        "events": [],
    }


def without(row: dict[str, Any], *attributes: str) -> dict[str, Any]:
    kept = {name: value for name, value in row["attributes"].items() if name not in attributes}
    return row | {"attributes": kept}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def otlp_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": otlp_attributes(value)}}
    return {} if value is None else {"stringValue": value}


def otlp_attributes(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": otlp_value(value)} for key, value in attributes.items()]


def batch(*rows: dict[str, Any]) -> dict[str, Any]:
    """The spans as the collector's file exporter writes a batch of them."""
    spans = [
        {
            "traceId": row["context"]["trace_id"].removeprefix("0x"),
            "spanId": row["context"]["span_id"].removeprefix("0x"),
            "parentSpanId": (row["parent_id"] or "").removeprefix("0x"),
            "name": row["name"],
            "kind": 3,
            "startTimeUnixNano": str(row["start_time"]),
            "endTimeUnixNano": str(row["end_time"]),
            "attributes": otlp_attributes(row["attributes"]),
            "events": [
                {"name": event["name"], "timeUnixNano": "1", "attributes": otlp_attributes(event["attributes"])}
                for event in row["events"]
            ],
            "status": {"code": 2} if row["status"]["status_code"] == "ERROR" else {},
        }
        for row in rows
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "sdk"}, "spans": spans}]}]}
