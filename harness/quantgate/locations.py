"""Places in a user's document: the keys and indices that lead to a value."""

from __future__ import annotations

from collections.abc import Mapping

from quantgate_engine.shown import cut, shown_name

Location = tuple[int | str, ...]

_LONGEST_FIELD = 200


def field_name(location: Location) -> str:
    """The location as the user reads it, such as `gain.any.0.metric`; what cannot be printed is escaped."""
    return cut(".".join(shown_name(str(part)) for part in location), _LONGEST_FIELD)


def child_at(value: object, part: int | str) -> tuple[bool, object]:
    """Whether a mapping or list states that part of itself, and what it states there."""
    if isinstance(value, Mapping):
        return part in value, value.get(part)
    if isinstance(value, list | tuple) and isinstance(part, int):
        return part < len(value), value[part] if part < len(value) else None
    return False, None


def is_stated(document: object, location: Location) -> bool:
    """Whether the document has a value of its own at the location, null included."""
    for part in location:
        stated, document = child_at(document, part)
        if not stated:
            return False
    return True
