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
    ids = UniqueIds(source)
    order = RowOrder(source)
    for row in rows:
        ids.check(row)
        order.check(row)
        records.append(row.record)
    return records


class UniqueIds:
    """Remembers the line of every id that it saw."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._line_of_id: dict[str, int] = {}

    def check(self, row: LocatedRecord) -> None:
        """Raises ConfigurationError, naming both lines, for an id that an earlier row has."""
        request_id = row.record.request_id
        if request_id in self._line_of_id:
            raise ConfigurationError(
                f"{self._source}, line {row.line}, field id: expected an id that no other row has, got "
                f"{shown(request_id)}, which line {self._line_of_id[request_id]} has already."
            )
        self._line_of_id[request_id] = row.line


class RowOrder:
    """Sees rows one by one; of earlier ones it keeps the last time, and the last turn of each session."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._last_ns: int | None = None
        self._last_turns: dict[str, tuple[int, str]] = {}
        self._block_sizes = OneBlockSize(source)

    @property
    def last_ns(self) -> int | None:
        """The time of the last row; None before the first."""
        return self._last_ns

    def turns(self) -> list[int]:
        """How many turns each session had, in order of their first rows."""
        return [turn for turn, _ in self._last_turns.values()]

    def check(self, row: LocatedRecord) -> None:
        """Raises ConfigurationError, naming the line, for a row that does not follow those before it."""
        self.check_time(row.record.scheduled_ns, row.line)
        self._block_sizes.check(row)
        if row.record.session_id is not None:
            self._check_turn(row.record, row.record.session_id, f"{self._source}, line {row.line}")

    def check_time(self, scheduled_ns: int, line: int) -> None:
        """The same for a row of which only the time matters."""
        where = f"{self._source}, line {line}"
        if self._last_ns is not None and scheduled_ns < self._last_ns:
            raise ConfigurationError(
                f"{where}: expected a time not before the previous row's; it lies "
                f"{(self._last_ns - scheduled_ns) / 1e9:.6f} s before it; sort the rows by time."
            )
        if scheduled_ns > LONGEST_SECONDS * NANOSECONDS_PER_SECOND:
            raise ConfigurationError(
                f"{where}: expected a time within {LONGEST_SECONDS} s of the first row's, got one "
                f"{scheduled_ns / NANOSECONDS_PER_SECOND:.0f} s after it; mend or remove the row."
            )
        self._last_ns = scheduled_ns

    def follow(self, first_ns: int, last_ns: int) -> bool:
        """Takes rows that are in order among themselves at once; False, and nothing taken, where they do not follow."""
        if self._last_ns is not None and first_ns < self._last_ns:
            return False
        if last_ns > LONGEST_SECONDS * NANOSECONDS_PER_SECOND:
            return False
        self._last_ns = last_ns
        return True

    def _check_turn(self, record: TraceRecord, session: str, where: str) -> None:
        last_turn, slo_class = self._last_turns.get(session, (0, record.slo_class))
        if record.turn != last_turn + 1:
            raise ConfigurationError(
                f"{where}, field turn: expected {last_turn + 1}, the next turn of session {shown(session)}, "
                f"got {record.turn}."
            )
        if record.slo_class != slo_class:
            raise ConfigurationError(
                f"{where}, field class: expected {shown(slo_class)}, the class of the earlier turns of session "
                f"{shown(session)}, got {shown(record.slo_class)}."
            )
        self._last_turns[session] = (record.turn, slo_class)


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
