"""Finds the one JSON object in an answer, without forgiving what a program could not forgive."""

from __future__ import annotations

import json
from typing import Any


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_pairs, parse_constant=_no_constant)


def json_objects(text: str) -> list[dict[str, Any]]:
    """Every top-level JSON object in the text, in order; prose, fences and tags around them are passed over.

    Objects inside others are not listed. Keys that stand twice, NaN and unfinished objects are not JSON.
    """
    found: list[dict[str, Any]] = []
    position = text.find("{")
    while position >= 0:
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            # An unreadable object: whatever lies inside it is not an answer of its own.
            return found
        found.append(value)
        position = text.find("{", end)
    return found
