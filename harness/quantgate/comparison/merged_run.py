"""Two stored runs of one plan as one, so that an arm of each can be paired request by request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from quantgate.gate.evidence import Evidence, Pairing
from quantgate.metrics.columns import is_equal
from quantgate.store.run_folder import LoadedRun


@dataclass(frozen=True, slots=True)
class ArmOfRun:
    """One arm of one stored run."""

    run: LoadedRun
    arm_id: str

    @property
    def name(self) -> str:
        return f"{self.arm_id} of {self.run.manifest.run_id}"


def pair_across_runs(baseline: ArmOfRun, candidate: ArmOfRun) -> Pairing:
    """Row i of both tables is the same request of the plan in the same pass, as within one run.

    Arms keep their names apart by their runs; quality items are paired where both runs measured them.
    """
    merged = LoadedRun(
        manifest=baseline.run.manifest,
        requests=pa.concat_tables([_rows(arm.run.requests, arm) for arm in (baseline, candidate)]),
        steps=baseline.run.steps.slice(0, 0),
        quality=pa.concat_tables([_rows(arm.run.quality, arm) for arm in (baseline, candidate)]),
    )
    return Evidence(merged).pair(baseline.name, candidate.name)


def _rows(table: pa.Table, arm: ArmOfRun) -> pa.Table:
    """The arm's rows under its name among all runs."""
    own = table.take(np.flatnonzero(is_equal(table, "arm_id", arm.arm_id)))
    index = own.schema.get_field_index("arm_id")
    return own.set_column(index, own.schema.field(index), pa.array([arm.name] * own.num_rows, pa.string()))
