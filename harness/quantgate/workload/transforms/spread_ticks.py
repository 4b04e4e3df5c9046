"""Repairs a clock that ticks: requests of one tick come one after another again, as they once did."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from quantgate.traces.native_row import LONGEST_SECONDS, NANOSECONDS_PER_SECOND
from quantgate.traces.record import TraceRecord
from quantgate.traces.shape.clock import ClockWatch
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed
from quantgate_engine.errors import ConfigurationError


class SpreadTicks(Transform):
    """Moves the requests of each tick to times drawn evenly between it and the next one, in their order.

    Given how many requests of a Poisson process fall into an interval, their times are the order statistics of so many
    even draws (Kingman, Poisson Processes, 1993, section 2.4). Each tick keeps its count, and what the counts tell of
    slower bursts stays as it was. A tick before a silence is taken to last one step.
    """

    kind: Literal["spread_ticks"] = "spread_ticks"
    tick_s: float | None = Field(
        None,
        gt=0.001,
        le=LONGEST_SECONDS,
        description="seconds between ticks; found in the times unless it is given",
    )

    @override
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        ticks = [list(rows) for _, rows in groupby(records, key=lambda record: record.scheduled_ns)]
        times_ns = [rows[0].scheduled_ns for rows in ticks]
        gaps_ns = [later - earlier for earlier, later in pairwise(times_ns)]
        step_s = _found_step_s(records) if self.tick_s is None else self._checked_step_s(gaps_ns)
        step_ns = round(step_s * NANOSECONDS_PER_SECOND)
        draws = random.Random(f"spread_ticks:{context.seed}")
        spread: list[TraceRecord] = []
        for rows, start_ns, gap_ns in zip(ticks, times_ns, [*gaps_ns, step_ns], strict=True):
            # Uneven ticks lie a little nearer or further than the step.
            length_ns = gap_ns if gap_ns < 1.5 * step_ns else step_ns
            offsets_ns = sorted(draws.randrange(length_ns) for _ in rows)
            spread += [
                replace(row, scheduled_ns=start_ns + offset_ns) for row, offset_ns in zip(rows, offsets_ns, strict=True)
            ]
        touched = sum(new != old for new, old in zip(spread, records, strict=True))
        details: dict[str, Any] = {"tick_s": step_s, "tick_found": self.tick_s is None, "ticks": len(ticks)}
        return Transformed(spread, touched, details)

    def _checked_step_s(self, gaps_ns: Sequence[int]) -> float:
        assert self.tick_s is not None
        nearest_s = min(gaps_ns, default=LONGEST_SECONDS * NANOSECONDS_PER_SECOND) / NANOSECONDS_PER_SECOND
        if nearest_s < self.tick_s / 2:
            raise ConfigurationError(
                f"The transform spread_ticks (tick_s={self.tick_s}) finds requests {nearest_s:g} s apart, so that the "
                f"clock does not tick every {self.tick_s} s; mend tick_s or leave the transform out."
            )
        return self.tick_s


def _found_step_s(records: Sequence[TraceRecord]) -> float:
    watch = ClockWatch()
    watch.add(np.array([record.scheduled_ns for record in records], dtype=np.int64))
    ticks = watch.ticks()
    if ticks is None:
        raise ConfigurationError(
            f"The transform spread_ticks finds no clock that ticks: the {len(records)} requests have no common step "
            "above 1 ms, or too few distinct times to show one; leave the transform out, or give tick_s."
        )
    if ticks.most_rows_per_tick == 1:
        raise ConfigurationError(
            f"The transform spread_ticks finds times at multiples of {ticks.step_s:g} s, but no two requests at one of "
            "them: they may come at regular times; leave the transform out, or give tick_s where the clock ticks."
        )
    return ticks.step_s
