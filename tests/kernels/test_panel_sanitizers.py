"""The products of panels as a program of their own, under sanitizers, for each set of instructions that runs here."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.kernels.instruction_sets import INSTRUCTION_SETS, require_instructions

from quantgate_kernels.cpu import build
from quantgate_kernels.cpu.compiler import find_compiler
from quantgate_kernels.unavailable import KernelSetUnavailableError

FLAGS = ("-std=c++17", "-O1", "-g", "-fopenmp-simd", "-fno-sanitize-recover=all", "-Wno-psabi", "-pthread")
UNITS = ("products/panel_linear.cpp", "products/panel_sums.cpp", "common/parallel.cpp")


@dataclass(frozen=True)
class Sanitizer:
    """flag: what it is called; options: the environment of the program."""

    flag: str
    options: dict[str, str]


SANITIZERS = {
    "address, undefined": Sanitizer("-fsanitize=address,undefined", {"ASAN_OPTIONS": "detect_leaks=0"}),
    "thread": Sanitizer("-fsanitize=thread", {"TSAN_OPTIONS": "halt_on_error=1"}),
}


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize("instructions", INSTRUCTION_SETS)
def test_sanitizers_find_nothing(instructions: str, sanitizer: str, tmp_path: Path) -> None:
    """Memory, undefined behaviour, and races of teams of threads that the program starts itself."""
    chosen = SANITIZERS[sanitizer]
    program = compile_or_skip([*FLAGS, chosen.flag, *require_instructions(instructions)], tmp_path / "sanitized")
    ran = run(program, chosen.options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "finished" in ran.stdout


def compile_or_skip(flags: list[str], program: Path) -> Path:
    """Skips where there is no compiler, or it has no runtime of the sanitizer."""
    try:
        compiler = find_compiler().command
    except KernelSetUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    sources = [Path(__file__).parent / "sanitized_panels.cpp", *(build.SOURCE / unit for unit in UNITS)]
    command = [*compiler, *flags, f"-I{build.SOURCE}", *map(str, sources), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode != 0 and "cannot find" in built.stderr:
        pytest.skip("this compiler has no sanitizer runtime")
    assert built.returncode == 0, built.stderr
    return program


def run(program: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Once more without random addresses where the thread sanitizer cannot place its own among them."""
    command = [str(program)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    setarch = shutil.which("setarch")
    if "unexpected memory mapping" in ran.stderr and setarch is not None:
        ran = subprocess.run([setarch, "-R", *command], capture_output=True, text=True, env=environment)
    if "unexpected memory mapping" in ran.stderr:
        pytest.skip("the thread sanitizer cannot run among this system's random addresses")
    return ran
