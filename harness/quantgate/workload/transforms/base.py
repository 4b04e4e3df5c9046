"""What a transform of the workload is: a validated setting that maps records to records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from quantgate.traces.record import TraceRecord
from quantgate.workload.prompt_encoder import PromptEncoder


@dataclass(frozen=True, slots=True)
class TransformContext:
    """What a transform may use besides the records."""

    encoder: PromptEncoder
    seed: int


@dataclass(frozen=True, slots=True)
class Transformed:
    """The records that stay, in order of time, and how many of the incoming rows were changed or removed.

    A shift of all times to a new start is no change of a row. details: what the transform counted, recorded beside its
    settings (plain JSON values).
    """

    records: list[TraceRecord]
    rows_touched: int
    details: dict[str, Any] = field(default_factory=dict)


class Transform(BaseModel, ABC):
    """Base of the transforms. Its fields are its settings; `kind` names it in suites and certificates."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: str

    @abstractmethod
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        """The transformed records. Never changes its input."""
