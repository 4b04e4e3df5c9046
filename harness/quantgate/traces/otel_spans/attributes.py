"""Attributes of OpenTelemetry as plain values, whether OTLP/JSON writes them or a plain object."""

from __future__ import annotations

from typing import Any

from quantgate.traces.kind_of_value import kind_of

_KINDS = "stringValue, intValue, doubleValue, boolValue, arrayValue, kvlistValue"


def attributes_of(value: Any, field: str, wanted: tuple[str, ...] = ("",)) -> dict[str, Any]:
    """The attributes whose keys begin with one of `wanted`; others are not looked into.

    Raises ValueError, which begins with the field, for what is neither an object nor OTLP's list of keys and values.
    """
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        raise ValueError(f"field {field}: expected a list of attributes or an object, got {kind_of(value)}")
    attributes: dict[str, Any] = {}
    for index, entry in enumerate(value):
        key = entry.get("key") if isinstance(entry, dict) else None
        if not isinstance(key, str):
            raise ValueError(f"field {field}.{index}: expected an attribute with key and value, got {kind_of(entry)}")
        if not key.startswith(wanted):
            continue
        if key in attributes:
            raise ValueError(f"field {field}.{index}.key: expected a key that stands once, got {key!r:.60} again")
        attributes[key] = _plain(entry.get("value"), f"{field}.{index}.value")
    return attributes


def _plain(value: Any, field: str) -> Any:
    """A value of OTLP, which is an object that names the value's type; one without any is an empty value."""
    if not isinstance(value, dict) or len(value) > 1:
        raise ValueError(f"field {field}: expected an object with one of {_KINDS}, got {kind_of(value)}")
    for kind, inner in value.items():
        place = f"{field}.{kind}"
        if kind in {"stringValue", "bytesValue"}:
            return _of_type(inner, str, "a text", place)
        if kind == "boolValue":
            return _of_type(inner, bool, "true or false", place)
        if kind == "intValue":
            return _integer(inner, place)
        if kind == "doubleValue":
            # NaN and the infinities are texts.
            return inner if isinstance(inner, str) else _of_type(inner, (int, float), "a number", place)
        if kind == "arrayValue":
            values = _of_type(_of_type(inner, dict, "an object", place).get("values", []), list, "a list", place)
            return [_plain(each, f"{place}.values.{index}") for index, each in enumerate(values)]
        if kind == "kvlistValue":
            return attributes_of(_of_type(inner, dict, "an object", place).get("values"), f"{place}.values")
        raise ValueError(f"field {field}: expected one of {_KINDS}, got {kind!r:.40}")
    return None


def _of_type(value: Any, kind: type | tuple[type, ...], expected: str, field: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"field {field}: expected {expected}, got {kind_of(value)}")
    return value


def _integer(value: Any, field: str) -> int:
    """OTLP writes 64-bit integers as texts; some exporters write numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = value.removeprefix("-") if isinstance(value, str) else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        raise ValueError(f"field {field}: expected a 64-bit integer, got {value!r:.40}")
    return int(value)
