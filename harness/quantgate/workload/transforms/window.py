"""Keeps a stretch of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field
from typing_extensions import override

from quantgate.traces.native_row import LONGEST_SECONDS
from quantgate.traces.record import TraceRecord
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed
from quantgate.workload.transforms.sessions import group_units, unit_key


class Window(Transform):
    """Requests from `start_s` (included) up to `start_s + length_s` (excluded), times counted from the window's start.

    A session belongs to the window that holds its first turn, whole: it would be another conversation without it.
    """

    kind: Literal["window"] = "window"
    start_s: float = Field(0.0, ge=0, le=LONGEST_SECONDS, description="seconds from the trace's start")
    length_s: float = Field(gt=0, le=LONGEST_SECONDS, description="seconds")

    @override
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        start_ns = round(self.start_s * 1e9)
        end_ns = start_ns + round(self.length_s * 1e9)
        inside = {key for key, unit in group_units(records).items() if start_ns <= unit[0].scheduled_ns < end_ns}
        kept = [
            replace(record, scheduled_ns=record.scheduled_ns - start_ns)
            for record in records
            if unit_key(record) in inside
        ]
        return Transformed(kept, len(records) - len(kept))
