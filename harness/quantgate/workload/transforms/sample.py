"""Takes a sample of a large log that keeps the make-up of its traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field
from typing_extensions import override

from quantgate.traces.record import TraceRecord
from quantgate.workload.transforms.allocation import allocate
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed
from quantgate.workload.transforms.sessions import group_units
from quantgate.workload.transforms.strata import StratumKey, stratum_of
from quantgate.workload.transforms.stratum_choice import choose_units

DEFAULT_LENGTH_EDGES = (512, 2048, 8192)


class Sample(Transform):
    """`requests` rows at most, drawn by the seed within strata of class, prompt length and task tags, sessions whole.

    proportional: each stratum keeps its share of the traffic. equal: each stratum gives the same number, as far as it
    has them, so that rare tasks can be judged too. keep_rate: times are divided so that the sample's requests come as
    often as the log's did; otherwise the sample is as long as the log and thinner.
    """

    kind: Literal["sample"] = "sample"
    requests: int = Field(ge=1, description="rows that stay at most; fewer only where no whole session fits any more")
    by: tuple[StratumKey, ...] = Field(("class", "length", "tags"), strict=False)
    length_edges: tuple[int, ...] = Field(
        DEFAULT_LENGTH_EDGES, strict=False, description="upper ends of the prompt length buckets, in tokens, rising"
    )
    allocation: Literal["proportional", "equal"] = "proportional"
    keep_rate: bool = False

    @override
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        units = list(group_units(records).values())
        strata: dict[str, list[list[TraceRecord]]] = {}
        for unit in units:
            strata.setdefault(stratum_of(unit, self.by, sorted(self.length_edges), context.encoder), []).append(unit)
        sizes = {name: sum(map(len, members)) for name, members in sorted(strata.items())}
        quotas = allocate(sizes, min(self.requests, len(records)), self.allocation)
        chosen = choose_units({name: strata[name] for name in sizes}, quotas, context.seed)
        kept_ids = {id(record) for members in chosen.values() for unit in members for record in unit}
        kept = [record for record in records if id(record) in kept_ids]
        details = {
            "strata": {name: {"of": size, "kept": sum(map(len, chosen.get(name, [])))} for name, size in sizes.items()}
        }
        if not self.keep_rate or not kept:
            return Transformed(kept, len(records) - len(kept), details)
        squeeze = len(kept) / len(records)
        paced = [replace(record, scheduled_ns=round(record.scheduled_ns * squeeze)) for record in kept]
        moved = sum(new != old for new, old in zip(paced, kept, strict=True))
        return Transformed(paced, len(records) - len(kept) + moved, details | {"times_divided_by": 1 / squeeze})
