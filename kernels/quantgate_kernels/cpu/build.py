"""Compiles the C++ kernels for this machine, once, into the cache."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from quantgate_kernels.cache_root import cache_root
from quantgate_kernels.cpu.compiler import Compiler, find_compiler
from quantgate_kernels.cpu.seal import is_sealed, seal
from quantgate_kernels.unavailable import KernelSetUnavailableError

NO_SPACE = os.strerror(errno.ENOSPC)
SOURCE = Path(__file__).parent / "source"
CPU_INFO = Path("/proc/cpuinfo")
COMPILE_TIMEOUT_S = 300
ABANDONED_AFTER_S = 24 * 3600
"""A half-written library of that age belongs to a process that was killed."""

# `omp simd` asks for vectorised loops and needs no OpenMP runtime; see parallel.h for the threads. GCC's note that
# vector types pass differently without their instructions concerns calls between libraries, and there are none.
COMMON_FLAGS = (
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-fopenmp-simd",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-Wno-psabi",
)
# The machine's own instructions; the second choice is for compilers that do not know this machine.
FLAG_CHOICES = ((*COMMON_FLAGS, "-march=native"), COMMON_FLAGS)


def build_library(folder: Path | None = None) -> Path:
    """The shared library for this machine, compiled where `folder` (a place in the cache by default) lacks it.

    Its name holds a hash of sources, compiler, flags and processor, so that a change of any of them is a new file; it
    is written under another name and renamed, so that two processes may build it at once. A file that is not whole (a
    copy that broke off, say) is made anew: to load it would end the process without a word.
    Raises KernelSetUnavailableError where it cannot be compiled or stored.
    """
    compiler = find_compiler()
    folder = folder if folder is not None else cache_root() / "kernels"
    complaint = ""
    for flags in FLAG_CHOICES:
        library = folder / f"cpu-{_fingerprint(compiler, flags)}.so"
        if is_sealed(library):
            return library
        complaint = _compile(compiler, flags, library)
        if not complaint:
            return library
    raise KernelSetUnavailableError(f"{' '.join(compiler.command)} could not compile them ({complaint})")


def sources() -> list[Path]:
    """Units and headers, in a fixed order. Includes are relative to `SOURCE`."""
    return sorted((*SOURCE.rglob("*.cpp"), *SOURCE.rglob("*.h")))


def compile_units(command: Sequence[str], folder: Path) -> list[Path]:
    """An object file in `folder` for each unit, as many at once as this process may use processors.

    Raises subprocess.CalledProcessError with the compiler's words for the first unit that does not compile, and
    OSError or subprocess.TimeoutExpired where the compiler does not run or come to an end.
    """

    def compile_unit(unit: Path) -> Path:
        # Units of different folders may have like names.
        compiled = folder / f"{'-'.join(unit.relative_to(SOURCE).parts)}.o"
        _run([*command, "-I", str(SOURCE), "-c", str(unit), "-o", str(compiled)])
        return compiled

    units = [source for source in sources() if source.suffix == ".cpp"]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None) as workers:
        return list(workers.map(compile_unit, units))


def _fingerprint(compiler: Compiler, flags: tuple[str, ...]) -> str:
    parts = [*compiler.command, compiler.version, *flags, platform.machine(), _processor_flags()]
    parts += [f"{source.relative_to(SOURCE)}\n{source.read_text()}" for source in sources()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _processor_flags() -> str:
    """The line of instruction sets, by its name on x86 or Arm; empty where the system does not tell."""
    try:
        lines = CPU_INFO.read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.lower().startswith(("flags", "features"))), "")


def _compile(compiler: Compiler, flags: tuple[str, ...], library: Path) -> str:
    """Writes `library` whole or not at all; returns the compiler's first complaint, or nothing.

    Raises KernelSetUnavailableError where the folder cannot be written to.
    """
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{library.stem}.", suffix=".partial", dir=library.parent)
    except OSError as error:
        raise KernelSetUnavailableError(
            f"{library.parent} cannot be written ({error.strerror}); set QUANTGATE_CACHE to a folder that can"
        ) from error
    os.close(descriptor)
    partial = Path(name)
    _remove_abandoned(library.parent)
    try:
        with tempfile.TemporaryDirectory(prefix="quantgate-kernels-") as objects:
            units = compile_units((*compiler.command, *flags), Path(objects))
            _run([*compiler.command, *flags, "-shared", *map(str, units), "-o", name])
        # Whatever calls itself a compiler: only what can be loaded is kept.
        ctypes.CDLL(name)
        seal(partial)
        partial.chmod(0o755)
        partial.replace(library)
    except subprocess.CalledProcessError as error:
        lines = [line.strip() for line in error.stderr.splitlines()]
        if any(NO_SPACE in line for line in lines):
            raise KernelSetUnavailableError(
                f"the compiler found no space left for them in {library.parent} or in {tempfile.gettempdir()}; free "
                "some, or set QUANTGATE_CACHE or TMPDIR to a folder that has it"
            ) from error
        return next((line for line in lines if "error" in line), f"exit {error.returncode}")
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    finally:
        partial.unlink(missing_ok=True)
    return ""


def _remove_abandoned(folder: Path) -> None:
    for partial in folder.glob(".cpu-*.partial"):
        with suppress(OSError):
            if time.time() - partial.stat().st_mtime > ABANDONED_AFTER_S:
                partial.unlink()


def _run(command: list[str]) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True, timeout=COMPILE_TIMEOUT_S, errors="replace")
