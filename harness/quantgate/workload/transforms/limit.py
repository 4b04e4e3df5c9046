"""Keeps the first requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from typing_extensions import override

from quantgate.traces.record import TraceRecord
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed


class Limit(Transform):
    """The first `requests` rows by time. A session may lose its last turns, never a turn in its middle."""

    kind: Literal["limit"] = "limit"
    requests: int = Field(ge=1, description="rows that stay at most")

    @override
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        kept = list(records[: self.requests])
        return Transformed(kept, len(records) - len(kept))
