"""Splits a workload into the blocks over which the arms are interleaved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from quantgate.traces.record import TraceRecord
from quantgate.workload.transforms.sessions import group_units, unit_key
from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError

USUAL_BLOCKS = 4


def settled_blocks(wanted: int | Literal["auto"], records: Sequence[TraceRecord]) -> int:
    """The number of blocks; `auto` takes the usual number, or one block for each unit where there are fewer."""
    return min(USUAL_BLOCKS, len(group_units(records))) if wanted == "auto" else wanted


def assign_blocks(records: Sequence[TraceRecord], blocks: int) -> list[int]:
    """The block of each record, parallel to `records`.

    Sessions and single requests are laid out by the time of their first request and cut where the count of requests
    comes nearest to equal shares; a session lies in one block, so its later turns may run after the next block's
    first requests were scheduled in the trace. Raises ConfigurationError where there are fewer units than blocks.
    """
    units = group_units(records)
    if not 1 <= blocks <= len(units):
        raise ConfigurationError(
            f"The workload was to be split into {counted(blocks, 'block')}; expected between 1 and {len(units)}, the "
            "number of its sessions and single requests: lower `blocks` in the suite's workload (or --blocks), or make "
            "it auto."
        )
    block_of: dict[tuple[str, str], int] = {}
    block, filled, left = 0, 0, len(units)
    for key, unit in units.items():
        middle = filled + len(unit) / 2
        wanted = int(middle * blocks / len(records))
        # No block may stay empty: move on by one at most, and at once when only one unit is left for each block.
        forced = blocks - 1 - block >= left
        if block_of and (wanted > block or forced):
            block += 1
        block_of[key] = block
        filled += len(unit)
        left -= 1
    return [block_of[unit_key(record)] for record in records]
