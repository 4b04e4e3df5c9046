"""Every Triton kernel in every configuration, compiled ahead of time: what its machine code says, and its roofline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_kernels.gpu.launch_table import ARCHITECTURES, SHARED_MEMORY
from quantgate_kernels.unavailable import KernelSetUnavailableError

if TYPE_CHECKING:
    from quantgate.progress import ProgressReporter

KERNELS_SCHEMA = "quantgate.kernels/1"
INSPECTION = "quantgate_kernels.gpu.ahead"


@dataclass(frozen=True, slots=True)
class KernelSurvey:
    """kernels, failed: as `quantgate_kernels.gpu.ahead.inspection.Inspected` and `.Failed`."""

    triton: str
    architectures: list[str]
    kernels: list[dict[str, Any]]
    failed: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        from quantgate_kernels.gpu.ahead.published import PUBLISHED

        return {
            "schema": KERNELS_SCHEMA,
            "triton": self.triton,
            "architectures": {
                name: {"shared_memory_bytes": SHARED_MEMORY[name], "published": asdict(PUBLISHED[name])}
                for name in self.architectures
            },
            "kernels": self.kernels,
            "failed": self.failed,
        }


def chosen_architectures(wanted: Sequence[str]) -> list[str]:
    """`sm_90` is `sm90`; all where none is wanted. Raises ConfigurationError for one without tables of its own."""
    names = [name.lower().replace("_", "") for name in wanted]
    for given, name in zip(wanted, names, strict=True):
        if name not in ARCHITECTURES:
            known = ", ".join(name.replace("sm", "sm_") for name in ARCHITECTURES)
            raise ConfigurationError(f"--arch is {given!r}; the kernels have tables for {known}.")
    return list(dict.fromkeys(names)) or list(ARCHITECTURES)


def survey(architectures: Sequence[str], kernel: str, progress: ProgressReporter) -> KernelSurvey:
    """kernel: a part of the names of those that are wanted. Compiles in processes of its own; no GPU is needed.

    Raises ConfigurationError where Triton is missing or too old, or no kernel has such a name, RunError where a
    process dies.
    """
    from quantgate_kernels.gpu.ahead.work import KERNELS
    from quantgate_kernels.gpu.device import require_triton, triton_version

    if not any(kernel in name for name in KERNELS):
        names = ", ".join(name.removesuffix("_kernel") for name in KERNELS)
        raise ConfigurationError(f"--kernel is {kernel!r}, which is in no kernel's name; there are {names}.")
    try:
        require_triton()
    except KernelSetUnavailableError as unavailable:
        raise ConfigurationError(f"{unavailable}.") from None
    kernels: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for architecture in architectures:
        with progress.phase(architecture, total=1.0) as advance, closing(_lines(architecture, kernel)) as lines:
            for line in lines:
                if "done" in line:
                    advance(line["done"] / line["all"], "")
                elif "problem" in line:
                    failed.append(line)
                else:
                    kernels.append(line)
    return KernelSurvey(triton_version() or "of unknown version", list(architectures), kernels, failed)


def _lines(architecture: str, kernel: str) -> Generator[dict[str, Any]]:
    """What the process writes; its standard error, where Triton prints whole modules, is kept back."""
    # Kernels that are decorated for the interpreter cannot be compiled.
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", INSPECTION, architecture, kernel]
    finished = False
    with (
        tempfile.TemporaryFile("w+", errors="replace") as complaints,
        subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for text in process.stdout:
                line = json.loads(text)
                finished = "done" in line and line["done"] == line["all"]
                yield line
        finally:
            if not finished:
                # Its workers end with it. Not by an interrupt, which background jobs ignore.
                process.terminate()
        process.wait()
        if not finished:
            complaints.seek(0)
            last = next((line.strip() for line in reversed(complaints.readlines()) if line.strip()), "no reason given")
            raise RunError(f"The inspection of {architecture} ended before it was done ({last}).")
