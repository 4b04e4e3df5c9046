"""The products of panels as a program of their own, under sanitizers, for each set of instructions that runs here."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kernels.instruction_sets import INSTRUCTION_SETS, require_instructions
from tests.kernels.sanitized_programs import MEMORY, RACES, Sanitizer, require_clean

UNITS = (
    "products/panel_linear.cpp",
    "products/panel_sums.cpp",
    "products/group_sums.cpp",
    "common/parallel.cpp",
)


@pytest.mark.parametrize("sanitizer", [pytest.param(MEMORY, id="memory"), pytest.param(RACES, id="races")])
@pytest.mark.parametrize("instructions", INSTRUCTION_SETS)
def test_sanitizers_find_nothing(instructions: str, sanitizer: Sanitizer, tmp_path: Path) -> None:
    """And teams of threads give the bits of one thread."""
    require_clean("sanitized_panels.cpp", UNITS, sanitizer, require_instructions(instructions), tmp_path)
