"""Everything that a replay has produced so far, cell by cell; it stays readable when the replay is cut short."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from quantgate.replay.interleave import Cell
from quantgate.store.schemas import REQUESTS, STEPS


@dataclass(frozen=True, slots=True)
class CellResult:
    """What one cell produced.

    anchor_ns: when the cell's first request was scheduled, from the run's start.
    plan_start_ns: when the plan schedules that request, so that cells can be laid on the plan's own time line.
    requests_intended: requests that the plan has in this cell; fewer rows than that were cut off.
    wall_ns, driver_cpu_ns: duration of the cell and CPU time of the driver's thread in it (None: not measured); with
        several load processes that of the busiest.
    """

    cell: Cell
    anchor_ns: int
    plan_start_ns: int
    requests_intended: int
    requests: pa.Table
    steps: pa.Table
    wall_ns: int
    driver_cpu_ns: int | None


@dataclass(slots=True)
class ReplayLog:
    """Filled by `run_replay` while it runs."""

    cells: list[CellResult] = field(default_factory=list)

    def of_arm(self, arm_id: str) -> list[CellResult]:
        return [result for result in self.cells if result.cell.arm_id == arm_id]

    def requests(self) -> pa.Table:
        return pa.concat_tables([REQUESTS.empty_table(), *(result.requests for result in self.cells)])

    def steps(self) -> pa.Table:
        return pa.concat_tables([STEPS.empty_table(), *(result.steps for result in self.cells)])
