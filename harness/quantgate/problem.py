"""What pydantic found wrong, put into words that a user can act on."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from quantgate.checked_words import without_kind
from quantgate.locations import Location, child_at, field_name
from quantgate.placed_error import PlacedError
from quantgate_engine.counted import counted
from quantgate_engine.shown import cut, on_one_line, shown

_EXPECTED: dict[str, str] = {
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "string_unicode": "text of whole characters",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "none_required": "nothing (null)",
    "date_type": "a date such as 2027-01-31",
    "date_parsing": "a date such as 2027-01-31",
    "date_from_datetime_parsing": "a date such as 2027-01-31",
    "path_type": "a path",
    "invalid_key": "keys that are text",
}

_LIMITS: dict[str, tuple[str, str]] = {
    "greater_than": ("a value above {}", "gt"),
    "greater_than_equal": ("a value of at least {}", "ge"),
    "less_than": ("a value below {}", "lt"),
    "less_than_equal": ("a value of at most {}", "le"),
    "too_short": ("at least {}", "min_length"),
    "too_long": ("at most {}", "max_length"),
    "string_too_short": ("text of at least {}", "min_length"),
    "string_too_long": ("text of at most {}", "max_length"),
    "string_pattern_mismatch": ("text that matches {}", "pattern"),
    "literal_error": ("{}", "expected"),
    "enum": ("{}", "expected"),
    "union_tag_invalid": ("{} as its kind", "expected_tags"),
}

_COUNTED = {"too_short": "item", "too_long": "item", "string_too_short": "character", "string_too_long": "character"}

_MISSING = "missing"
_NO_KIND = "union_tag_not_found"
_UNKNOWN = "extra_forbidden"
_OWN_CHECK = "value_error"
_LONGEST_MESSAGE = 500
"""Characters of what a model's own check says, which may quote any number of values."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in the user's data.

    `location` holds the keys and indices that lead to the value (or, where `names_key`, to the key itself).
    `further` counts the other places that are wrong too; `expected` are the kinds of values that would have been right.
    """

    location: Location
    message: str
    names_key: bool
    further: int
    expected: tuple[str, ...] = ()

    @property
    def field(self) -> str:
        """The location as the user reads it, such as `gain.any.0.metric`; empty for the whole document."""
        return field_name(self.location)

    def sentence(self, place: str) -> str:
        """`place, field f: what is wrong.`; `place` names the file and, where known, the line."""
        where = f"{place}, field {self.field}" if self.location else place
        others = f" ({self.further} more to mend in this document)" if self.further else ""
        return f"{where}: {self.message}.{others}"


def first_problem(error: ValidationError, data: object, model: type[BaseModel]) -> Problem:
    """The first problem of `error`, which came from validating `data` (plain dicts and lists) against `model`.

    The branches of a union are told as one problem: "expected an integer or text, got [1]".
    """
    details = error.errors(include_url=False)
    placed = [(_place(_location(detail), detail["type"], data) + _inside(detail)[0], detail) for detail in details]
    placed = [(place, detail) for place, detail in placed if not _is_consequence(place, detail, placed)]
    first = placed[0][0]
    here = [detail for place, detail in placed if place == first]
    kind = here[0]["type"]
    expected: tuple[str, ...] = ()
    if kind in (_MISSING, _NO_KIND):
        values = ", ".join(_fixed_values(model, first))
        message = f"this key is missing; add it ({values})" if values else "this key is missing; add it"
    elif kind == _UNKNOWN:
        message = _unknown_key(str(first[-1]), known_keys(model, first[:-1]))
    elif kind == _OWN_CHECK:
        message = on_one_line(_inside(here[0])[1].rstrip("."), _LONGEST_MESSAGE)
    else:
        expected = tuple(dict.fromkeys(_expected(detail) for detail in here))
        message = f"expected {' or '.join(expected)}, got {in_words(_given(here[0]))}"
    further = len({place for place, _ in placed}) - 1
    return Problem(first, message, names_key=kind == _UNKNOWN, further=further, expected=expected)


def _is_consequence(
    place: Location, detail: Mapping[str, Any], placed: Sequence[tuple[Location, Mapping[str, Any]]]
) -> bool:
    """Whether a value is told to be wrong only because something inside it is.

    pydantic counts the items of a list without those that are wrong, and of a union it also tells the branches that
    the value was not meant for.
    """
    if detail["type"] in ("too_short", "too_long"):
        limit = detail["ctx"].get("min_length", 0), detail["ctx"].get("max_length", math.inf)
        if not limit[0] <= len(detail["input"]) <= limit[1]:
            return False
    return any(len(other) > len(place) and other[: len(place)] == place for other, _ in placed)


def _expected(detail: Mapping[str, Any]) -> str:
    kind = detail["type"]
    if kind in _LIMITS:
        words, key = _LIMITS[kind]
        limit = detail["ctx"][key]
        if kind in _COUNTED:
            return words.format(counted(limit, _COUNTED[kind]))
        return words.format(int(limit) if isinstance(limit, float) and limit.is_integer() else limit)
    return _EXPECTED.get(kind, without_kind(str(detail["msg"])).removeprefix("Input should be ").rstrip("."))


def _location(detail: Mapping[str, Any]) -> Location:
    """Where the problem is; of a mapping that does not say its kind, the key that is to say it."""
    location: Location = detail["loc"]
    return (*location, detail["ctx"]["discriminator"].strip("'")) if detail["type"] == _NO_KIND else location


def _inside(detail: Mapping[str, Any]) -> tuple[Location, str]:
    """Where inside a model its own check found the problem, and what it said; both empty for pydantic's checks."""
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, PlacedError):
        return error.in_document(detail["input"])
    return (), "" if error is None else str(error)


def _given(detail: Mapping[str, Any]) -> object:
    """The value that was wrong; of a mapping of an unknown kind, the kind."""
    return detail["ctx"]["tag"] if detail["type"] == "union_tag_invalid" else detail["input"]


def _place(location: Location, kind: str, data: object) -> Location:
    """The part of pydantic's location that exists in the data: pydantic also names union branches and aliases."""
    kept: list[int | str] = []
    value = data
    for position, part in enumerate(location):
        last = position == len(location) - 1
        exists, child = child_at(value, part)
        if exists:
            value = child
        elif not (last and kind in (_MISSING, _NO_KIND)):
            continue
        kept.append(part)
    return tuple(kept)


def in_words(value: object) -> str:
    """A value of the user's as sentences show it: in YAML's words, on one line, and cut where it is long."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return str(value).lower()
    words: dict[type, Callable[[Any], str]] = {
        dict: lambda mapping: f"a mapping of {counted(len(mapping), 'key')}",
        list: lambda items: f"a list of {counted(len(items), 'item')}",
        tuple: lambda items: shown(list(items)),
        set: lambda items: f"a set of {counted(len(items), 'item')}",
        bytes: lambda data: f"{counted(len(data), 'byte')} of binary data",
        date: str,
        datetime: str,
    }
    return cut(words.get(type(value), shown)(value))


def _unknown_key(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    advice = f"did you mean {near[0]}?" if near else "remove it"
    return f"unknown key, {advice} (known keys: {', '.join(known)})"


def known_keys(model: type[BaseModel], location: Location) -> list[str]:
    """The keys that the model knows at a location, by its JSON schema; empty where the schema cannot tell."""
    known = [key for option in _schemas_at(model, location) for key in option.get("properties", {})]
    return sorted(dict.fromkeys(known))


def _fixed_values(model: type[BaseModel], location: Location) -> list[str]:
    """The values that a key may have where each kind of its mapping allows exactly one."""
    options = _schemas_at(model, location)
    return sorted({str(option["const"]) for option in options}) if all("const" in option for option in options) else []


def _schemas_at(model: type[BaseModel], location: Location) -> list[dict[str, Any]]:
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})
    candidates: list[dict[str, Any]] = [schema]
    for part in location:
        candidates = [
            child
            for candidate in candidates
            for option in _options(candidate, definitions)
            for child in _children(option, part)
        ]
    return [option for candidate in candidates for option in _options(candidate, definitions)]


def _options(schema: dict[str, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in schema:
        return _options(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    branches = schema.get("anyOf", []) + schema.get("oneOf", [])
    return [option for branch in branches for option in _options(branch, definitions)] or [schema]


def _children(schema: dict[str, Any], part: int | str) -> list[dict[str, Any]]:
    if isinstance(part, int):
        return [schema["items"]] if isinstance(schema.get("items"), dict) else []
    child = schema.get("properties", {}).get(part, schema.get("additionalProperties"))
    return [child] if isinstance(child, dict) else []
