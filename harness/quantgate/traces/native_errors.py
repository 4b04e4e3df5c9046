"""Turns a validation error of one JSON line into one sentence: line, field, what was expected, what was found."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ValidationError

from quantgate.checked_words import without_kind
from quantgate.locations import field_name
from quantgate.traces.native_row import NativeRow
from quantgate.traces.repeated_keys import RepeatedKeyError
from quantgate_engine.shown import shown_name

_FOUND_LIMIT = 60


def explain_row_error(error: ValidationError, source: str, line: int, model: type[BaseModel] = NativeRow) -> str:
    """The first problem of a row of `model` as one sentence; one problem is enough to act on."""
    problem = error.errors(include_url=False)[0]
    told = without_kind(problem["msg"])
    where = f"{source}, line {line}"
    location = tuple(part for part in problem["loc"] if not _is_union_tag(part))
    field = field_name(location)
    kind = problem["type"]
    if kind == "json_invalid":
        # The parser saw one line only: its "line 1" would read as the file's.
        reason = problem["ctx"]["error"].replace(" at line 1 column", " at column")
        return f"{where}: expected one JSON object, got text that is not JSON ({reason})."
    if not location:
        found = told if kind.endswith(("kinds", "session", "turn", "blocks")) else "expected one JSON object"
        # A check of several fields names the one that it is about, if it is about one.
        about = problem.get("ctx", {}).get("field")
        return f"{where}, field {about}: {found}." if about else f"{where}: {found}."
    if kind == "extra_forbidden":
        return f"{where}, field {field}: expected only known fields; this one is not; remove it or check its spelling."
    expected = _expectation(location, model) or told
    if kind == "missing":
        return f"{where}, field {field}: expected {expected}, got nothing; add the field."
    return f"{where}, field {field}: expected {expected}, got {_show(problem['input'])}."


def repeated_key(repeated: RepeatedKeyError, source: str, line: int) -> str:
    return (
        f"{source}, line {line}, field {shown_name(repeated.key)}: this key stands twice in one object; keep one of "
        "them."
    )


def _is_union_tag(part: int | str) -> bool:
    """pydantic puts the chosen checker's kind into the location; it is no field of the file."""
    return part in {"contains", "regex", "tool_call", "python_syntax"}


def _expectation(location: tuple[int | str, ...], model: type[BaseModel]) -> str | None:
    """The description of the field at the location, found in the JSON schema; the nearest one above it otherwise."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})
    nodes: list[dict[str, Any]] = [schema]
    description = None
    for part in location:
        children = [child for node in nodes for child in _children(node, part, definitions)]
        described = [child["description"] for child in children if "description" in child]
        description = described[0] if described else description
        nodes = children
    return description


def _children(node: dict[str, Any], part: int | str, definitions: dict[str, Any]) -> list[dict[str, Any]]:
    node = definitions[node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node
    alternatives = [*node.get("anyOf", []), *node.get("oneOf", [])]
    found = [child for option in alternatives for child in _children(option, part, definitions)]
    if isinstance(part, int):
        items = node.get("items")
        return [*found, items] if items else found
    own = node.get("properties", {}).get(part)
    return [*found, own] if own else found


def _show(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _FOUND_LIMIT else text[: _FOUND_LIMIT - 3] + "..."
