"""Programs of their own that call the kernels under sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from quantgate_kernels.cpu import build
from quantgate_kernels.cpu.compiler import find_compiler
from quantgate_kernels.unavailable import KernelSetUnavailableError

FLAGS = ("-std=c++17", "-O1", "-g", "-fopenmp-simd", "-fno-sanitize-recover=all", "-Wno-psabi", "-pthread")


@dataclass(frozen=True)
class Sanitizer:
    """flag: what it is called; options: the environment of the program."""

    flag: str
    options: dict[str, str]


MEMORY = Sanitizer("-fsanitize=address,undefined", {"ASAN_OPTIONS": "detect_leaks=0"})
"""Memory and undefined behaviour."""

RACES = Sanitizer("-fsanitize=thread", {"TSAN_OPTIONS": "halt_on_error=1"})
"""Races of teams of threads that the program starts itself."""


def require_clean(
    main: str, units: tuple[str, ...], sanitizer: Sanitizer, flags: tuple[str, ...], folder: Path
) -> None:
    """Fails unless the program of `main`, beside this file, and of `units` of the kernels' source says "finished".

    flags: for the instructions that it may use.
    """
    program = _compile_or_skip(main, units, [*FLAGS, sanitizer.flag, *flags], folder / "sanitized")
    ran = _run(program, sanitizer.options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "finished" in ran.stdout


def _compile_or_skip(main: str, units: tuple[str, ...], flags: list[str], program: Path) -> Path:
    """Skips where there is no compiler, or it has no runtime of the sanitizer."""
    try:
        compiler = find_compiler().command
    except KernelSetUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    sources = [Path(__file__).parent / main, *(build.SOURCE / unit for unit in units)]
    command = [*compiler, *flags, f"-I{build.SOURCE}", *map(str, sources), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode != 0 and "cannot find" in built.stderr:
        pytest.skip("this compiler has no sanitizer runtime")
    assert built.returncode == 0, built.stderr
    return program


def _run(program: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Once more without random addresses where the thread sanitizer cannot place its own among them."""
    command = [str(program)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    setarch = shutil.which("setarch")
    if "unexpected memory mapping" in ran.stderr and setarch is not None:
        ran = subprocess.run([setarch, "-R", *command], capture_output=True, text=True, env=environment)
    if "unexpected memory mapping" in ran.stderr:
        pytest.skip("the thread sanitizer cannot run among this system's random addresses")
    return ran
