"""In which order the arms take their turns on one machine, so that its drifts touch all of them alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm's turn: one block of the plan in one pass."""

    pass_index: int
    block_index: int
    arm_id: str


def interleave(arm_ids: Sequence[str], blocks: int, passes: int = 1) -> tuple[Cell, ...]:
    """Counterbalanced order: A B, B A, and so on.

    Blocks go in pairs: the second of a pair takes the arms in the reverse order of the first, so that over a pair
    each arm's mean position is the same and a linear drift cancels out (the A B B A design). Each pair starts one arm
    further on, so that over 2 x arms blocks each arm stands equally often at every position.
    """
    cells = []
    for index in range(passes * blocks):
        pass_index, block_index = divmod(index, blocks)
        cells += [Cell(pass_index, block_index, arm_id) for arm_id in _order(arm_ids, index)]
    return tuple(cells)


def interleave_whole_passes(arm_ids: Sequence[str], blocks: int, passes: int) -> tuple[Cell, ...]:
    """The same order with whole passes as turns, for arms that cannot be up together.

    An arm runs all blocks of a pass before the next one comes up. The second pass of a pair begins with the arm that
    the first ended with, which stays up. A single pass is not counterbalanced: a drift over it touches the arms unlike.
    """
    return tuple(
        Cell(pass_index, block_index, arm_id)
        for pass_index in range(passes)
        for arm_id in _order(arm_ids, pass_index)
        for block_index in range(blocks)
    )


def _order(arm_ids: Sequence[str], turn: int) -> list[str]:
    """The arms in the order of the `turn`-th block or pass."""
    pair, second = divmod(turn, 2)
    first_arm = pair % len(arm_ids)
    order = [*arm_ids[first_arm:], *arm_ids[:first_arm]]
    return order[::-1] if second else order
