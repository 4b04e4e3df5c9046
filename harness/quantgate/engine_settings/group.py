"""A group of the engine's settings as YAML states it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator

from quantgate_engine.errors import ConfigurationError


class Strict(BaseModel):
    """No unknown keys, and nothing of another type taken for a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Group(Strict):
    """Fields and types; the engine's own group (`made_into`) has the same fields, and knows their limits.

    It is made as soon as the group is read, so that whatever it refuses is told with file, line and field.
    """

    made_into: ClassVar[type[Any]]

    @model_validator(mode="after")
    def _the_engine_takes_them(self) -> Self:
        try:
            self.to_engine()
        except ConfigurationError as error:
            raise ValueError(str(error).replace(f"{self.made_into.__name__}.", "")) from None
        return self

    def to_engine(self) -> Any:
        """The engine's own object with these values."""
        return self.made_into(**{field.name: _as_engine(getattr(self, field.name)) for field in fields(self.made_into)})


def _as_engine(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_as_engine, value))
    return value.to_engine() if isinstance(value, Group) else value
