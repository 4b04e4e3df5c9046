"""The device that the Triton kernels run on: its architecture, and how many processors share its work."""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import torch

from quantgate_kernels.unavailable import KernelSetUnavailableError

OLDEST_CAPABILITY = (8, 0)
"""Before it there are no matrix instructions for bfloat16, and none for INT8 that Triton knows."""

OLDEST_TRITON = (3, 6)
TRITON_PACKAGES = ("triton", "triton-rocm", "pytorch-triton", "pytorch-triton-rocm")
"""PyTorch's own builds have names of their own; all of them are imported as `triton`."""


@dataclass(frozen=True, slots=True)
class Device:
    """architecture: as Triton names it, `sm90` or `gfx942`."""

    architecture: str
    processors: int


INTERPRETER = Device("sm90", processors=132)
"""What the interpreter computes as: with the parameters of an H100."""


def interpreted() -> bool:
    """Whether this process runs Triton kernels in Triton's interpreter, on tensors of the CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def require_triton() -> None:
    """Raises KernelSetUnavailableError where it is not installed, or too old. Does not import it."""
    oldest = ".".join(map(str, OLDEST_TRITON))
    if importlib.util.find_spec("triton") is None:
        raise KernelSetUnavailableError(f'Triton is not installed; `pip install "triton>={oldest}"` brings it')
    found = triton_version()
    if found is not None and tuple(map(int, re.findall(r"\d+", found)[:2])) < OLDEST_TRITON:
        raise KernelSetUnavailableError(
            f"Triton {found} is installed, and the kernels need {oldest} or newer; "
            f'`pip install "triton>={oldest}"` brings it'
        )


def triton_version() -> str | None:
    """None where no package of a known name has it, as where someone built it."""
    for package in TRITON_PACKAGES:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return None


def find_device() -> Device:
    """The current device of torch. Raises KernelSetUnavailableError where the kernels cannot run on it."""
    require_triton()
    if interpreted():
        return INTERPRETER
    if not torch.cuda.is_available():
        raise KernelSetUnavailableError("torch sees no GPU; install its build for the driver of this machine")
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    if torch.version.hip is not None:
        return Device(properties.gcnArchName.split(":")[0], properties.multi_processor_count)
    capability = (properties.major, properties.minor)
    if capability < OLDEST_CAPABILITY:
        raise KernelSetUnavailableError(
            f"{properties.name} is older than compute capability 8.0, which the kernels need; choose reference"
        )
    return Device(f"sm{properties.major}{properties.minor}", properties.multi_processor_count)
