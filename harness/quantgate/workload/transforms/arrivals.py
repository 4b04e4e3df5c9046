"""Lets the traffic arrive by a process of known rate and burstiness instead of at the times of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from quantgate.placed_error import PlacedError
from quantgate.traces.native_row import LONGEST_SECONDS, NANOSECONDS_PER_SECOND
from quantgate.traces.record import TraceRecord
from quantgate.workload.portable_draws import PortableDraws
from quantgate.workload.transforms.arrival_processes import PROCESSES, ProcessName
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed
from quantgate.workload.transforms.sessions import group_units, unit_key
from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError

MOST_PER_SECOND = 1_000_000


class Arrivals(Transform):
    """Sessions and single requests start in the order of the trace, at the times of a process drawn by the seed.

    rate counts those starts, so that sessions of several turns send more requests than it says. A session moves as a
    whole: later turns keep their distance in the schedule and their think times.
    """

    kind: Literal["arrivals"] = "arrivals"
    process: ProcessName
    rate: float = Field(
        gt=0, le=MOST_PER_SECOND, allow_inf_nan=False, description="starts per second; of a ramp, at its beginning"
    )
    cv: float | None = Field(
        None,
        ge=0.01,
        le=100,
        allow_inf_nan=False,
        description="gamma: standard deviation of the gaps over their mean; 1 is Poisson",
    )
    to_rate: float | None = Field(
        None, gt=0, le=MOST_PER_SECOND, allow_inf_nan=False, description="ramp: starts per second at its end"
    )

    @model_validator(mode="after")
    def _has_the_settings_of_its_process(self) -> Self:
        own = PROCESSES[self.process].own_settings
        for name in ("cv", "to_rate"):
            given = getattr(self, name) is not None
            if given and name not in own:
                owner = next(process for process, known in PROCESSES.items() if name in known.own_settings)
                raise PlacedError(((name,), f"{name} is a setting of the process {owner}, not of {self.process}"))
            if not given and name in own:
                raise PlacedError(((name,), f"the process {self.process} needs {name}"))
        return self

    @override
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        units = group_units(records)
        starts_ns = self._starts_ns(len(units), context.seed)
        shift_ns = {
            key: start_ns - unit[0].scheduled_ns for (key, unit), start_ns in zip(units.items(), starts_ns, strict=True)
        }
        moved = [replace(record, scheduled_ns=record.scheduled_ns + shift_ns[unit_key(record)]) for record in records]
        touched = sum(new != old for new, old in zip(moved, records, strict=True))
        # Sorting keeps the order of equal times, so that units and turns stay in the trace's order.
        in_order = sorted(moved, key=lambda record: record.scheduled_ns)
        return Transformed(in_order, touched, self._found(starts_ns))

    def _starts_ns(self, units: int, seed: int) -> list[int]:
        starts = PROCESSES[self.process].starts(
            units, PortableDraws(f"arrivals:{seed}"), rate=self.rate, **self._own_settings()
        )
        if starts and starts[-1] > LONGEST_SECONDS:
            raise ConfigurationError(
                f"The transform arrivals (process={self.process}, rate={self.rate}) spreads {counted(units, 'start')} "
                f"over {starts[-1]:.0f} s; expected at most {LONGEST_SECONDS} s."
            )
        return [round(start * NANOSECONDS_PER_SECOND) for start in starts]

    def _own_settings(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in PROCESSES[self.process].own_settings}

    def _found(self, starts_ns: Sequence[int]) -> dict[str, Any]:
        """What was drawn, to set beside what was asked: rate and burstiness of a draw differ from those of its process.

        The first gap counts from the replay's start; cv_found is None below two gaps.
        """
        gaps_s = np.diff(np.asarray([0, *starts_ns], dtype=np.int64)) / NANOSECONDS_PER_SECOND
        total_s = float(gaps_s.sum())
        return {
            "starts": len(starts_ns),
            "rate_found": round(len(gaps_s) / total_s, 6) if total_s > 0 else None,
            "cv_asked": PROCESSES[self.process].gap_cv if self.cv is None else self.cv,
            "cv_found": round(float(gaps_s.std() / gaps_s.mean()), 6) if len(gaps_s) > 1 and total_s > 0 else None,
        }
