"""Conditions on a row of a log: which rows are traffic, and which SLO class a row belongs to."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from quantgate.traces.openai_log.lookup import MISSING, first_present, look_up

DEFAULT_CLASS = "interactive"

Scalar = str | int | float | bool


def _must_compile(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"expected a valid regular expression ({error})") from None
    return pattern


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Condition(_Strict):
    """A field and what must be true of it; several tests must all hold. A row without the field never fits."""

    path: str
    equals: Scalar | None = None
    one_of: tuple[Scalar, ...] | None = Field(None, min_length=1)
    matches: Annotated[str, AfterValidator(_must_compile)] | None = Field(
        None, description="a regular expression that finds a match in the field's text"
    )
    at_least: float | None = None
    below: float | None = None

    @model_validator(mode="after")
    def _one_test_at_least(self) -> Self:
        if all(test is None for test in (self.equals, self.one_of, self.matches, self.at_least, self.below)):
            raise ValueError("expected at least one of equals, one_of, matches, at_least and below")
        return self

    def holds(self, row: Any) -> bool:
        value = look_up(row, self.path)
        if value is MISSING or value is None:
            return False
        return (
            (self.equals is None or value == self.equals)
            and (self.one_of is None or value in self.one_of)
            and (self.matches is None or re.search(self.matches, str(value)) is not None)
            and (self.at_least is None or (_is_number(value) and value >= self.at_least))
            and (self.below is None or (_is_number(value) and value < self.below))
        )


class ClassRule(Condition):
    """Rows that meet the condition belong to this class."""

    slo_class: str = Field(alias="class", min_length=1)


class ClassColumn(_Strict):
    """The SLO class of a row: the first rule that holds, else a field's value, else `otherwise`."""

    path: str | tuple[str, ...] = ("slo_class", "class")
    values: dict[str, str] = Field(default={}, description="classes by the field's values, where these are no classes")
    rules: tuple[ClassRule, ...] = ()
    otherwise: str = Field(DEFAULT_CLASS, min_length=1)

    def class_of(self, row: Any) -> str:
        """Raises ValueError for a value that `values` does not list."""
        for rule in self.rules:
            if rule.holds(row):
                return rule.slo_class
        paths = (self.path,) if isinstance(self.path, str) else self.path
        path, value = first_present(row, paths)
        if not path:
            return self.otherwise
        if not self.values:
            return str(value)
        if str(value) not in self.values:
            known = ", ".join(repr(name) for name in self.values)
            raise ValueError(f"field {path}: expected one of {known} (the values of the column map), got {value!r}")
        return self.values[str(value)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
