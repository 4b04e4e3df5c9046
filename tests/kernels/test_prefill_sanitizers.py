"""Attention of mixed steps under the address and undefined behaviour sanitizers, in a program of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quantgate_kernels.cpu import build
from quantgate_kernels.cpu.compiler import Compiler, find_compiler
from quantgate_kernels.unavailable import KernelSetUnavailableError

UNITS = ("attention/attention.cpp", "common/parallel.cpp")
INSTRUCTION_SETS = {"this machine's": ["-march=native"], "any machine's": []}


@pytest.fixture
def compiler() -> Compiler:
    try:
        return find_compiler()
    except KernelSetUnavailableError as unavailable:
        pytest.skip(str(unavailable))


@pytest.mark.parametrize("instructions", INSTRUCTION_SETS)
def test_sanitizers_find_nothing(instructions: str, compiler: Compiler, tmp_path: Path) -> None:
    program = tmp_path / "sanitized"
    flags = ["-std=c++17", "-O1", "-g", "-fopenmp-simd", "-Wno-psabi", *INSTRUCTION_SETS[instructions]]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [Path(__file__).parent / "sanitized_prefill.cpp", *(build.SOURCE / unit for unit in UNITS)]
    command = [*compiler.command, *flags, *sanitizers, "-I", str(build.SOURCE), *map(str, sources)]
    built = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
    if built.returncode != 0 and "cannot find" in built.stderr:
        pytest.skip("this compiler has no sanitizer runtime")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert ran.returncode == 0, ran.stderr
    assert "finished" in ran.stdout
