"""The machine's own C++ compiler. Imports nothing heavy, so that a look at the machine can ask for it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass

from quantgate_kernels.unavailable import KernelSetUnavailableError

COMPILERS = ("c++", "g++", "clang++")


@dataclass(frozen=True, slots=True)
class Compiler:
    """command: program and fixed arguments; version: what it says of itself."""

    command: tuple[str, ...]
    version: str


def find_compiler() -> Compiler:
    """$CXX where it is set, else the first of c++, g++ and clang++.

    Raises KernelSetUnavailableError where there is none that runs.
    """
    wanted = os.environ.get("CXX", "").strip()
    try:
        candidates = [tuple(shlex.split(wanted))] if wanted else [(name,) for name in COMPILERS]
    except ValueError as error:
        raise KernelSetUnavailableError(f"CXX is {wanted!r}, no command ({error}); correct or unset it") from error
    for program, *arguments in filter(None, candidates):
        path = shutil.which(program)
        if path is not None and (version := _version(path)) is not None:
            return Compiler((path, *arguments), version)
    tried = f"CXX={wanted}" if wanted else ", ".join(COMPILERS)
    advice = "correct or unset CXX" if wanted else "install g++ or clang++"
    raise KernelSetUnavailableError(f"no C++ compiler was found (tried {tried}); {advice}")


def _version(path: str) -> str | None:
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
