"""What must hold between the rows of any trace: unique ids, rising times, complete turns."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.traces.native_row import LONGEST_SECONDS, NANOSECONDS_PER_SECOND
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import LocatedRecord
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown


def check_consistency(rows: Iterable[LocatedRecord], source: str) -> list[TraceRecord]:
    """The records, once they are known to fit together.

    Raises ConfigurationError, naming the line, for a repeated id, a time below the row before or decades after the
    first, a session whose turns do not count 1, 2, 3 ... in file order or change their class, and blocks of another
    size than those above.
    """
    records: list[TraceRecord] = []
    line_of_id: dict[str, int] = {}
    last_turn: dict[str, TraceRecord] = {}
    block_sizes = OneBlockSize(source)
    for row in rows:
        record, where = row.record, f"{source}, line {row.line}"
        if record.request_id in line_of_id:
            raise ConfigurationError(
                f"{where}, field id: expected an id that no other row has, got {shown(record.request_id)}, "
                f"which line {line_of_id[record.request_id]} has already."
            )
        if records and record.scheduled_ns < records[-1].scheduled_ns:
            raise ConfigurationError(
                f"{where}: expected a time not before the previous row's; it lies "
                f"{(records[-1].scheduled_ns - record.scheduled_ns) / 1e9:.6f} s before it; sort the rows by time."
            )
        if record.scheduled_ns > LONGEST_SECONDS * NANOSECONDS_PER_SECOND:
            raise ConfigurationError(
                f"{where}: expected a time within {LONGEST_SECONDS} s of the first row's, got one "
                f"{record.scheduled_ns / NANOSECONDS_PER_SECOND:.0f} s after it; mend or remove the row."
            )
        block_sizes.check(row)
        if record.session_id is not None:
            _check_turn(record, last_turn.get(record.session_id), where)
            last_turn[record.session_id] = record
        line_of_id[record.request_id] = row.line
        records.append(record)
    return records


def _check_turn(record: TraceRecord, previous: TraceRecord | None, where: str) -> None:
    expected_turn = 1 if previous is None else previous.turn + 1
    if record.turn != expected_turn:
        raise ConfigurationError(
            f"{where}, field turn: expected {expected_turn}, the next turn of session {shown(record.session_id)}, "
            f"got {record.turn}."
        )
    if previous is not None and record.slo_class != previous.slo_class:
        raise ConfigurationError(
            f"{where}, field class: expected {shown(previous.slo_class)}, the class of the earlier turns of session "
            f"{shown(record.session_id)}, got {shown(record.slo_class)}."
        )


class OneBlockSize:
    """Sees that all blocks of a file have one size: equal ids are equal tokens."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._block_tokens: int | None = None

    def check(self, row: LocatedRecord) -> None:
        """Raises ConfigurationError, naming the line, for blocks of another size than those of the rows above."""
        blocks = row.record.prompt_blocks
        if blocks is None:
            return
        self._block_tokens = self._block_tokens or blocks.block_tokens
        if blocks.block_tokens != self._block_tokens:
            raise ConfigurationError(
                f"{self._source}, line {row.line}, field block_tokens: expected {self._block_tokens}, as in the rows "
                f"above, got {blocks.block_tokens}."
            )
