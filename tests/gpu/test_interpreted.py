"""Runs the tests of `interpreted`, each file in a process of its own, with Triton as an interpreter.

Triton decides when it is imported whether it interprets or compiles, and cannot do both in one process.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.gpu.triton_processes import TRITONS, run_python

FILES = sorted(Path(__file__).with_name("interpreted").glob("test_*.py"))


@pytest.mark.parametrize("triton", TRITONS)
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_passes_in_the_interpreter(file: Path, triton: str) -> None:
    finished = run_python(["-m", "pytest", "-p", "no:cacheprovider", str(file)], triton, TRITON_INTERPRET="1")
    if finished.returncode:
        pytest.fail(f"{finished.stdout[-6000:]}\n{finished.stderr[-2000:]}", pytrace=False)
