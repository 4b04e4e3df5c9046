"""Blocks for interleaving: about equal, sessions whole, none empty."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import counted, patiently, session, workloads

from quantgate.traces.record import TraceRecord
from quantgate.workload.blocks import assign_blocks, settled_blocks
from quantgate.workload.transforms.sessions import group_units, unit_key
from quantgate_engine.errors import ConfigurationError


def test_single_requests_are_cut_into_equal_stretches_of_time() -> None:
    assert assign_blocks([counted(f"r{i}", i) for i in range(8)], 4) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_session_stays_in_the_block_of_its_first_turn() -> None:
    first, second = session("s", [0, 3])
    records = [first, counted("a", 1), counted("b", 2), second]
    assert assign_blocks(records, 2) == [0, 1, 1, 0]


def test_more_blocks_than_units_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"into 3 blocks; expected between 1 and 2, .* or make it auto\."):
        assign_blocks([*session("s", [0, 1]), counted("a", 2)], 3)
    with pytest.raises(ConfigurationError, match="into 0 blocks"):
        assign_blocks([counted("a")], 0)


def test_auto_takes_the_usual_number_or_as_many_as_there_are_units() -> None:
    few = [*session("s", [0, 1]), counted("a", 2)]
    assert settled_blocks("auto", few) == 2
    assert settled_blocks("auto", [counted(f"r{i}", i) for i in range(9)]) == 4
    assert settled_blocks(3, few) == 3


@patiently
@given(workloads(), st.integers(1, 6))
def test_blocks_are_whole_ordered_filled_and_balanced(records: list[TraceRecord], wanted: int) -> None:
    units = group_units(records)
    blocks = min(wanted, len(units))
    assigned = assign_blocks(records, blocks)
    block_of_unit: dict[tuple[str, str], set[int]] = {}
    for record, block in zip(records, assigned, strict=True):
        block_of_unit.setdefault(unit_key(record), set()).add(block)
    assert all(len(found) == 1 for found in block_of_unit.values())
    in_order = [min(block_of_unit[key]) for key in units]
    assert in_order == sorted(in_order)
    assert set(in_order) == set(range(blocks))
    if len(units) >= 4 * blocks:
        longest = max(len(unit) for unit in units.values())
        share = len(records) / blocks
        assert all(abs(assigned.count(block) - share) <= longest for block in range(blocks))
