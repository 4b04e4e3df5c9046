"""What a trace file holds, found out in memory that the number of its rows hardly fills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quantgate.traces.azure_columns import azure_batches
from quantgate.traces.azure_reader import AzureTrace
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.left_out_rows import LeftOutRows
from quantgate.traces.promised_sharing import PromisedSharing
from quantgate.traces.reader import no_rows, open_trace
from quantgate.traces.streamed_rows import SessionCounts, StreamedRows
from quantgate.traces.traffic_shape import ShapeTotals, TrafficShape
from quantgate.traces.transform_record import TransformRecord

SCHEMA = "quantgate.trace-inspection/1"


@dataclass(frozen=True, slots=True)
class PrefixSharing:
    """What the ids of prompts' blocks promise a cache that holds all that ever came.

    shared_blocks: blocks that an earlier prompt had behind the same start. shared_share: of all blocks.
    """

    blocks: int
    shared_blocks: int
    shared_share: float


@dataclass(frozen=True, slots=True)
class Inspection:
    """left_out: rows that are no traffic, by kind. steps: what reading the file did to its rows."""

    trace: str
    format: str
    shape: TrafficShape
    sessions: SessionCounts | None
    prefix_sharing: PrefixSharing | None
    left_out: dict[str, int]
    steps: tuple[TransformRecord, ...]

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        first = {"schema": SCHEMA, "trace": fields.pop("trace"), "format": fields.pop("format")}
        return first | self.shape.to_json() | {name: value for name, value in fields.items() if name != "shape"}


def inspect_trace(path: Path, settings: ImportSettings | None = None) -> Inspection:
    """Reads the file from end to end; no personal data is taken out, because nothing of a text is kept.

    Raises ConfigurationError as `import_trace` does; a repeated id is told after all else.
    """
    settings = settings or ImportSettings()
    chosen, parsed = open_trace(path, settings)
    totals = ShapeTotals()
    sessions = sharing = None
    steps: Sequence[TransformRecord] = parsed.steps
    if chosen.name == AzureTrace.name:
        left_out = LeftOutRows(str(path), strict=settings.strict)
        for batch in azure_batches(path, left_out):
            totals.add(batch)
        steps = [left_out.step(totals.rows, {})]
    else:
        rows = StreamedRows(parsed.rows, lambda: open_trace(path, settings)[1].rows, str(path))
        for batch in rows.batches():
            totals.add(batch)
        sessions, sharing = rows.sessions(), _prefix_sharing(rows.sharing())
    if not totals.rows:
        raise no_rows(path)
    return Inspection(str(path), chosen.name, totals.shape(), sessions, sharing, _left_out(steps), tuple(steps))


def _prefix_sharing(promised: PromisedSharing | None) -> PrefixSharing | None:
    if promised is None:
        return None
    return PrefixSharing(promised.blocks, promised.shared_blocks, promised.shared_blocks / promised.blocks)


def _left_out(steps: Sequence[TransformRecord]) -> dict[str, int]:
    kinds: Counter[str] = Counter()
    for step in steps:
        kinds.update(step.parameters.get("left_out", {}))
    return dict(sorted(kinds.items()))
