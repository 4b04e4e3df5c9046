"""JSON readers keep the last of two equal keys in silence; a length written twice must not vanish."""

from __future__ import annotations

import json
from typing import Any


class RepeatedKeyError(ValueError):
    """An object of the text has a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def refuse_repeated_keys(text: str) -> None:
    """Raises RepeatedKeyError for the first key that stands twice in an object of `text`, which is valid JSON."""
    json.loads(text, object_pairs_hook=_distinct)


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise RepeatedKeyError(key)
        seen.add(key)
