"""The device that the Triton kernels run on: its architecture, and how many processors share its work."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass

import torch

from quantgate_kernels.unavailable import KernelSetUnavailableError

OLDEST_CAPABILITY = (8, 0)
"""Before it there are no matrix instructions for bfloat16, and none for INT8 that Triton knows."""


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
    """Raises KernelSetUnavailableError where it is not installed. Does not import it."""
    if importlib.util.find_spec("triton") is None:
        raise KernelSetUnavailableError('Triton is not installed; `pip install "quantgate[gpu]"` brings it')


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
