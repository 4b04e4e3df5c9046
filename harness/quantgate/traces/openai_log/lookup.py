"""Finds a field of a log's row by a path such as `request.body.messages` or `response.choices.0.message`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any


class _Missing:
    """Stands for a field that the row does not have; `null` is a value."""


MISSING = _Missing()


def look_up(row: Any, path: str) -> Any:
    """The value at the path, or MISSING.

    Each dot may also be part of a key (`gen_ai.request.model`); numbers index lists; keys with a hyphen match whatever
    their case, as names of HTTP headers do; text that holds JSON is entered.
    """
    if isinstance(row, str):
        row = _decoded(row)
    if isinstance(row, list):
        head, _, rest = path.partition(".")
        if not (head.isascii() and head.isdigit() and int(head) < len(row)):
            return MISSING
        return look_up(row[int(head)], rest) if rest else row[int(head)]
    if not isinstance(row, dict):
        return MISSING
    for key, rest in _ways_to_split(path):
        child = _child(row, key)
        if child is not MISSING:
            found = look_up(child, rest) if rest else child
            if found is not MISSING:
                return found
    return MISSING


def first_present(row: Any, paths: Iterable[str]) -> tuple[str, Any]:
    """The first path whose value is there and not null, with the value; ("", None) where there is none."""
    for path in paths:
        value = look_up(row, path)
        if value is not MISSING and value is not None:
            return path, value
    return "", None


@cache
def _ways_to_split(path: str) -> tuple[tuple[str, str], ...]:
    """(key, rest of the path), the whole path as one key first."""
    dots = [position for position, letter in enumerate(path) if letter == "."]
    return ((path, ""), *((path[:dot], path[dot + 1 :]) for dot in dots))


def _child(row: dict[str, Any], key: str) -> Any:
    if key in row:
        return row[key]
    if "-" not in key:
        return MISSING
    lowered = key.lower()
    return next((value for name, value in row.items() if name.lower() == lowered), MISSING)


# A row's body is entered once for each path that leads through it.
@lru_cache(maxsize=8)
def _decoded(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return MISSING
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return MISSING
