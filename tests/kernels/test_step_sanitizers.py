"""The step program and its head as a program of their own, under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kernels.instruction_sets import ANY_MACHINE, THIS_MACHINE, require_instructions
from tests.kernels.sanitized_programs import MEMORY, RACES, require_clean

PROGRAM = "sanitized_step.cpp"
UNITS = (
    "step/decoder_step.cpp",
    "step/head.cpp",
    "products/panel_sums.cpp",
    "products/group_sums.cpp",
    "common/parallel.cpp",
    "common/team.cpp",
)


@pytest.mark.parametrize("instructions", [ANY_MACHINE, THIS_MACHINE])
def test_steps_keep_to_their_memory(instructions: str, tmp_path: Path) -> None:
    """In every form of weights and of cache; and 2 and 3 threads give the bits of one."""
    require_clean(PROGRAM, UNITS, MEMORY, require_instructions(instructions), tmp_path)


def test_members_of_a_team_do_not_race(tmp_path: Path) -> None:
    """Nobody reads what another member has written without a meeting in between."""
    require_clean(PROGRAM, UNITS, RACES, require_instructions(THIS_MACHINE), tmp_path)
