"""A group of the engine's settings as YAML states it."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator

from quantgate.locations import Location, field_name
from quantgate.placed_error import PlacedError
from quantgate.problem import in_words
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.setting_checks import SettingError

Places = tuple[tuple[Location, str], ...]
"""Where a mistake can be mended, and what to say there; see `PlacedError`."""


class Strict(BaseModel):
    """No unknown keys, and nothing of another type taken for a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Group(Strict):
    """Fields and types; the engine's own group (`made_into`) has the same fields, and knows their limits.

    It is made as soon as the group is read, so that whatever it refuses is told with file, line and field.
    """

    made_into: ClassVar[type[Any]]

    @model_validator(mode="after")
    def _can_be_used(self) -> Self:
        self.require_usable()
        return self

    def require_usable(self) -> None:
        """Raises PlacedError where the engine refuses the values."""
        try:
            self.to_engine()
        except SettingError as error:
            raise PlacedError(*places_of(error)) from None
        except ConfigurationError as error:
            raise ValueError(str(error).replace(f"{self.made_into.__name__}.", "")) from None

    def to_engine(self) -> Any:
        """The engine's own object with these values."""
        return self.made_into(**{field.name: _as_engine(getattr(self, field.name)) for field in fields(self.made_into)})


def places_of(error: SettingError) -> Places:
    """Where in a group of YAML the engine's complaint can be mended, and what to say there, in YAML's words."""
    at_fault, *beside = (_location(field) for field in (error.field.partition(".")[2], *error.beside))
    found, expected = in_words(error.value), re.sub(r"\bNone\b", "null", error.expected)
    elsewhere = f"{field_name(at_fault)} is {found}; expected {expected}"
    return (
        (at_fault, f"got {found}, expected {expected}"),
        *((location, elsewhere) for location in beside),
        ((), elsewhere),
    )


def _location(field: str) -> Location:
    return tuple(int(part) if part.isdecimal() else part for part in field.split("."))


def _as_engine(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_as_engine, value))
    return value.to_engine() if isinstance(value, Group) else value
