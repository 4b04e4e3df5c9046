"""Values of flags, checked: whatever is wrong is told under the name of the flag."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import BaseModel

Settings = TypeVar("Settings", bound="BaseModel")


def settings_from_flags(model: type[Settings], values: Mapping[str, Any], flags: Mapping[str, str]) -> Settings:
    """The settings that flags ask for. `flags`: the flag of each field that is not called as its flag.

    Raises ConfigurationError: "--request-timeout: expected a value above 0, got -1.0."
    """
    from pydantic import ValidationError

    from quantgate.problem import first_problem

    data = dict(values)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = first_problem(error, data, model)
    field = str(problem.location[0]) if problem.location else ""
    flag = flags.get(field, "--" + field.replace("_", "-"))
    # A flag that stands for a group, or for a whole file, does not say by itself which setting is wrong.
    inside = f", field {problem.field}" if any(isinstance(part, str) for part in problem.location[1:]) else ""
    place = f"{flag}{inside}: " if field else ""
    raise ConfigurationError(f"{place}{problem.message}.")


def finite(value: float | None) -> float | None:
    """Callback of an option that takes a number: infinities and NaN are none."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"expected a finite number, got {value}")
    return value
