"""Lowers the rate and keeps its shape over time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from typing_extensions import override

from quantgate.traces.record import TraceRecord
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed
from quantgate.workload.transforms.sessions import unit_key


class Thin(Transform):
    """Keeps each session, and each request outside a session, with probability `keep`.

    The choice depends on the seed and the unit's id alone, so that a smaller `keep` keeps a subset of a larger one.
    Independent thinning of a Poisson process leaves a Poisson process of `keep` times its rate (Kingman, Poisson
    Processes, 1993, section 5.1).
    """

    kind: Literal["thin"] = "thin"
    keep: float = Field(gt=0, le=1, description="share of the units that stay")

    @override
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        kept = [record for record in records if self._keeps(unit_key(record), context.seed)]
        return Transformed(kept, len(records) - len(kept))

    def _keeps(self, unit: tuple[str, str], seed: int) -> bool:
        return random.Random(f"thin:{seed}:{unit[0]}:{unit[1]}").random() < self.keep
