"""Compiles the C++ kernels for this machine, once, into the cache."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import tempfile
from pathlib import Path

from quantgate_kernels.cache_root import cache_root
from quantgate_kernels.cpu.compiler import Compiler, find_compiler
from quantgate_kernels.unavailable import KernelSetUnavailableError

SOURCE = Path(__file__).parent / "source"
CPU_INFO = Path("/proc/cpuinfo")
COMPILE_TIMEOUT_S = 300

# `omp simd` asks for vectorised loops and needs no OpenMP runtime; see parallel.h for the threads. GCC's note that
# vector types pass differently without their instructions concerns calls between libraries, and there are none.
COMMON_FLAGS = (
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-shared",
    "-fopenmp-simd",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",
    "-Wno-psabi",
)
# The machine's own instructions; the second line is for compilers that do not know this machine.
FLAG_CHOICES = ((*COMMON_FLAGS, "-march=native"), COMMON_FLAGS)


def build_library(folder: Path | None = None) -> Path:
    """The shared library for this machine, compiled where `folder` (a place in the cache by default) lacks it.

    Its name holds a hash of sources, compiler, flags and processor, so that a change of any of them is a new file; it
    is written under another name and renamed, so that two processes may build it at once.
    Raises KernelSetUnavailableError where it cannot be compiled or stored.
    """
    compiler = find_compiler()
    folder = folder if folder is not None else cache_root() / "kernels"
    complaint = ""
    for flags in FLAG_CHOICES:
        library = folder / f"cpu-{_fingerprint(compiler, flags)}.so"
        if library.exists():
            return library
        complaint = _compile(compiler, flags, library)
        if not complaint:
            return library
    raise KernelSetUnavailableError(f"{' '.join(compiler.command)} could not compile them ({complaint})")


def sources() -> list[Path]:
    """Units and headers, in a fixed order."""
    return sorted((*SOURCE.glob("*.cpp"), *SOURCE.glob("*.h")))


def _fingerprint(compiler: Compiler, flags: tuple[str, ...]) -> str:
    parts = [*compiler.command, compiler.version, *flags, platform.machine(), _processor_flags()]
    parts += [f"{source.name}\n{source.read_text()}" for source in sources()]
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
    units = [str(source) for source in sources() if source.suffix == ".cpp"]
    try:
        subprocess.run(
            [*compiler.command, *flags, *units, "-o", name],
            capture_output=True, text=True, check=True, timeout=COMPILE_TIMEOUT_S, errors="replace",
        )  # fmt: skip
        partial.chmod(0o755)
        partial.replace(library)
    except subprocess.CalledProcessError as error:
        return next((line.strip() for line in error.stderr.splitlines() if "error" in line), f"exit {error.returncode}")
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    finally:
        partial.unlink(missing_ok=True)
    return ""
