"""Fields of a JSON configuration, read with the types that they should have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from quantgate_engine.errors import ModelError
from quantgate_engine.shown import shown

LARGEST_INTEGER = 2**31 - 1
"""No size of a model is larger; what is would fail in arithmetic, not in a sentence."""


@dataclass(frozen=True, slots=True)
class ConfigFields:
    """The `values` of one JSON object of the file `path`; `inside` names that object where it is not the whole file.

    A field that is missing or null takes its default, and where there is none it is an error. Every reader raises
    ModelError with the file, the field, what was expected and what was found.
    """

    path: Path
    values: Mapping[str, Any]
    inside: str = ""

    def error(self, field: str, expected: str, found: object) -> ModelError:
        name = f"{self.inside}.{field}" if self.inside else field
        return ModelError(f"{self.path}, field {name}: expected {expected}, found {shown(found)}.")

    def integer(self, field: str, default: int | None = None, least: int = 1, most: int = LARGEST_INTEGER) -> int:
        found = self.values.get(field)
        value = default if found is None else found
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.error(field, "a positive integer" if least == 1 else f"an integer of at least {least}", found)
        if value > most:
            raise self.error(field, f"an integer of at most {most}", found)
        return value

    def optional_integer(self, field: str) -> int | None:
        return None if self.values.get(field) is None else self.integer(field)

    def number(self, field: str, default: float | None = None) -> float:
        found = self.values.get(field)
        value = default if found is None else found
        if not _is_positive(value):
            raise self.error(field, "a positive number", found)
        return float(value)

    def optional_number(self, field: str) -> float | None:
        return None if self.values.get(field) is None else self.number(field)

    def numbers(self, field: str, count: int) -> tuple[float, ...]:
        """A list of exactly `count` positive numbers."""
        found = self.values.get(field)
        if not isinstance(found, list) or len(found) != count or not all(map(_is_positive, found)):
            raise self.error(field, f"a list of {count} positive numbers", found)
        return tuple(map(float, found))

    def flag(self, field: str, *, default: bool) -> bool:
        found = self.values.get(field)
        if found is not None and not isinstance(found, bool):
            raise self.error(field, "true or false", found)
        return default if found is None else found

    def section(self, field: str) -> ConfigFields | None:
        """The object that stands under `field`; None where there is none."""
        found = self.values.get(field)
        if found is None:
            return None
        if not isinstance(found, dict):
            raise self.error(field, "an object", found)
        return ConfigFields(self.path, found, inside=f"{self.inside}.{field}" if self.inside else field)


def _is_positive(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
