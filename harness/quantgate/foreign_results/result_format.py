"""What a format of result files is: how to know it, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quantgate.foreign_results.documents import Document
from quantgate.foreign_results.measured_result import MeasuredResult
from quantgate.problem import first_problem
from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ResultFormat:
    """One tool's file format.

    file_names: what the tool calls the file where only its folder is given, best first.
    recognises: whether a file that starts with this JSON object is of this format.
    read: the results in a file's documents. Raises ConfigurationError naming file, line and field.
    """

    name: str
    description: str
    file_names: tuple[str, ...]
    recognises: Callable[[dict[str, Any]], bool]
    read: Callable[[Sequence[Document], Path], list[MeasuredResult]]


class ForeignModel(BaseModel):
    """A part of another tool's file: the fields that we need, strictly typed and finite; all others are theirs."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


Measured = Annotated[float, Field(ge=0)]
"""A time or a rate."""

Count = Annotated[int, Field(ge=0)]


_Model = TypeVar("_Model", bound=ForeignModel)


def validated(document: Document, model: type[_Model]) -> _Model:
    """The document as `model`. Raises ConfigurationError with place, field, what was expected and what was found."""
    try:
        return model.model_validate(document.content)
    except ValidationError as error:
        raise ConfigurationError(first_problem(error, document.content, model).sentence(document.place)) from None


def label_of(path: Path, usual_names: tuple[str, ...]) -> str:
    """A short name for a file: its folder's where the tool calls every such file the same."""
    return path.parent.name if path.name in usual_names and path.parent.name else path.stem
