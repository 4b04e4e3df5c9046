"""Records grouped into the units that must stay together: whole sessions, and requests that have none."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.traces.record import TraceRecord


def unit_key(record: TraceRecord) -> tuple[str, str]:
    """Names the unit of a record; a session and a request of the same name are different units."""
    if record.session_id is not None:
        return ("session", record.session_id)
    return ("request", record.request_id)


def group_units(records: Sequence[TraceRecord]) -> dict[tuple[str, str], list[TraceRecord]]:
    """Units in order of their first record; records inside a unit keep their order."""
    units: dict[tuple[str, str], list[TraceRecord]] = {}
    for record in records:
        units.setdefault(unit_key(record), []).append(record)
    return units
