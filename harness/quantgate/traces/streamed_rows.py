"""The rows of a trace checked and turned into columns one after another, for files that memory would not hold."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from quantgate.traces.consistency import RowOrder, UniqueIds
from quantgate.traces.promised_sharing import PromisedSharing, SharingCount
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import LocatedRecord
from quantgate.traces.shape.batch import UNKNOWN_LENGTH, ArrivalBatch
from quantgate.traces.traffic_shape import known_prompt_tokens

_ROWS_AT_A_TIME = 1 << 14


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """sessions: conversations that the trace names. turns: their rows. most_turns: of one session."""

    sessions: int
    turns: int
    most_turns: int


class StreamedRows:
    """Keeps 8 bytes of each row, by which repeated ids are found, and the last turn of each session.

    read_again: begins to read the file anew; called only where an id seems to stand twice.
    """

    def __init__(
        self, rows: Iterable[LocatedRecord], read_again: Callable[[], Iterable[LocatedRecord]], source: str
    ) -> None:
        self._rows = iter(rows)
        self._read_again = read_again
        self._source = source
        self._order = RowOrder(source)
        self._sharing: SharingCount | None = None
        # Python's hash of a text has 64 bits and another key in every process, so that no file is made to collide.
        self._id_hashes = array("q")

    def batches(self) -> Iterator[ArrivalBatch]:
        """All rows. Raises ConfigurationError as `check_consistency` does, for a repeated id after the last row."""
        while some := list(islice(self._rows, _ROWS_AT_A_TIME)):
            for row in some:
                self._order.check(row)
                self._add_sharing(row.record)
                self._id_hashes.append(hash(row.record.request_id))
            yield _columns(some)
        self._check_ids()

    def sharing(self) -> PromisedSharing | None:
        """Of a cache that holds all that ever came, in blocks of the trace's own; None where no row tells of blocks."""
        return None if self._sharing is None else self._sharing.promised()

    def sessions(self) -> SessionCounts | None:
        """None where no row belongs to a session."""
        turns = self._order.turns()
        return SessionCounts(len(turns), sum(turns), max(turns)) if turns else None

    def _add_sharing(self, record: TraceRecord) -> None:
        if record.prompt_blocks is None:
            return
        if self._sharing is None:
            self._sharing = SharingCount(record.prompt_blocks.block_tokens)
        self._sharing.add(record)

    def _check_ids(self) -> None:
        hashes = np.sort(np.frombuffer(self._id_hashes, dtype=np.int64)) if self._id_hashes else np.empty(0)
        repeated = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        if repeated:
            ids = UniqueIds(self._source)
            for row in self._read_again():
                if hash(row.record.request_id) in repeated:
                    ids.check(row)


def _columns(rows: list[LocatedRecord]) -> ArrivalBatch:
    records = [row.record for row in rows]
    inputs = [known_prompt_tokens(record) for record in records]
    return ArrivalBatch(
        np.array([record.scheduled_ns for record in records], dtype=np.int64),
        np.array([UNKNOWN_LENGTH if length is None else length for length in inputs], dtype=np.int64),
        np.array([record.max_tokens for record in records], dtype=np.int64),
    )
