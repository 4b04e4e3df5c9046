"""Replays the trace faster or slower than it was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field
from typing_extensions import override

from quantgate.traces.native_row import LONGEST_SECONDS, NANOSECONDS_PER_SECOND
from quantgate.traces.record import TraceRecord
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed
from quantgate_engine.errors import ConfigurationError


class Speed(Transform):
    """`factor` 2 replays twice as fast: arrival times and think times are divided by it.

    Named by its effect, because tools that call the same thing a scale disagree on its direction.
    """

    kind: Literal["speed"] = "speed"
    factor: float = Field(ge=0.001, le=1_000_000, description="2 is twice as fast, 0.5 half as fast")

    @override
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        faster = [
            replace(
                record,
                scheduled_ns=round(record.scheduled_ns / self.factor),
                think_time_ns=round(record.think_time_ns / self.factor),
            )
            for record in records
        ]
        longest = max((record.scheduled_ns for record in faster), default=0) / NANOSECONDS_PER_SECOND
        if longest > LONGEST_SECONDS:
            raise ConfigurationError(
                f"The transform speed (factor={self.factor}) stretches the trace over {longest:.0f} s; expected at "
                f"most {LONGEST_SECONDS} s."
            )
        return Transformed(faster, sum(new != old for new, old in zip(faster, records, strict=True)))
