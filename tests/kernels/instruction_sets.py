"""Instruction sets to compile the kernels for: each takes other paths through the sources."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

ANY_MACHINE = "any machine"
AVX2 = "AVX2"
THIS_MACHINE = "this machine"

INSTRUCTION_SETS: dict[str, tuple[str, ...]] = {
    ANY_MACHINE: (),
    AVX2: ("-mavx2", "-mfma", "-mf16c", "-mno-avx512f"),
    THIS_MACHINE: ("-march=native",),
}
"""By name, the flags that a compiler needs for it."""


def require_instructions(name: str) -> tuple[str, ...]:
    """The flags of the set; skips the test where this machine cannot run it."""
    if name == AVX2 and not _has_avx2():
        pytest.skip("this machine has no AVX2")
    return INSTRUCTION_SETS[name]


def _has_avx2() -> bool:
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    try:
        return {"avx2", "fma", "f16c"} <= set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return False
