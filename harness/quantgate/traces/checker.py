"""How a row of our own format says which answers are right."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _must_compile(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"a valid regular expression ({error})") from None
    return pattern


class _Checker(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ContainsChecker(_Checker):
    """The answer contains all (or any) of the texts, letter case aside."""

    kind: Literal["contains"]
    texts: tuple[str, ...] = Field(min_length=1, description="a list of at least one text")
    match: Literal["all", "any"] = Field("all", description="'all' or 'any'")


class RegexChecker(_Checker):
    """A Python regular expression finds a match somewhere in the answer."""

    kind: Literal["regex"]
    pattern: Annotated[str, AfterValidator(_must_compile)] = Field(description="a valid regular expression")


class ToolCallChecker(_Checker):
    """The answer is one JSON object that names the tool and its arguments; `tool: null` expects no call."""

    kind: Literal["tool_call"]
    tool: str | None = Field(description="a tool's name, or null where no tool fits")
    arguments: dict[str, Any] = Field(default_factory=dict, description="an object of argument values")


class PythonSyntaxChecker(_Checker):
    """The answer's code parses as Python and defines the function."""

    kind: Literal["python_syntax"]
    defines: str = Field(pattern=r"^[A-Za-z_]\w*$", description="the name of a Python function")


Checker = Annotated[
    ContainsChecker | RegexChecker | ToolCallChecker | PythonSyntaxChecker,
    Field(discriminator="kind"),
]
