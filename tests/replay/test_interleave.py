"""Counterbalancing: what each arm's place in the order must satisfy."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from quantgate.replay.interleave import Cell, interleave, interleave_whole_passes


def test_two_arms_go_a_b_b_a_and_the_mirror_of_it() -> None:
    cells = interleave(["A", "B"], blocks=4)
    assert "".join(cell.arm_id for cell in cells) == "ABBABAAB"
    assert cells[2] == Cell(pass_index=0, block_index=1, arm_id="B")


def test_passes_continue_the_balance() -> None:
    cells = interleave(["A", "B"], blocks=1, passes=2)
    assert cells == (Cell(0, 0, "A"), Cell(0, 0, "B"), Cell(1, 0, "B"), Cell(1, 0, "A"))


@given(st.integers(1, 6), st.integers(1, 8), st.integers(1, 3))
def test_every_arm_gets_every_block_of_every_pass_once_and_blocks_stay_together(
    arms: int, blocks: int, passes: int
) -> None:
    arm_ids = [f"arm{i}" for i in range(arms)]
    cells = interleave(arm_ids, blocks, passes)
    assert Counter(cells) == Counter(Cell(p, b, a) for p in range(passes) for b in range(blocks) for a in arm_ids)
    order = [(cell.pass_index, cell.block_index) for cell in cells]
    assert order == sorted(order)


@given(st.integers(1, 6), st.integers(1, 4))
def test_mean_positions_are_equal_over_pairs_and_all_positions_over_a_full_turn(arms: int, turns: int) -> None:
    arm_ids = [f"arm{i}" for i in range(arms)]
    cells = interleave(arm_ids, blocks=2 * arms * turns)
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for index, cell in enumerate(cells):
        positions[cell.arm_id].append(index % arms)
    for places in positions.values():
        assert all(places[i] + places[i + 1] == arms - 1 for i in range(0, len(places), 2))
        assert Counter(places) == Counter(dict.fromkeys(range(arms), 2 * turns))


def test_arms_that_cannot_be_up_together_alternate_by_whole_passes() -> None:
    cells = interleave_whole_passes(["A", "B"], blocks=2, passes=4)
    assert "".join(cell.arm_id for cell in cells) == "AABBBBAABBAAAABB"
    assert cells[4:6] == (Cell(1, 0, "B"), Cell(1, 1, "B"))


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 6))
def test_whole_passes_hold_every_cell_once_and_take_the_order_of_blocks(arms: int, blocks: int, passes: int) -> None:
    arm_ids = [f"arm{i}" for i in range(arms)]
    cells = interleave_whole_passes(arm_ids, blocks, passes)
    assert Counter(cells) == Counter(interleave(arm_ids, blocks, passes))
    turns = [cell.arm_id for cell in cells if cell.block_index == 0]
    assert turns == [cell.arm_id for cell in interleave(arm_ids, blocks=1, passes=passes)]
