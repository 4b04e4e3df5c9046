"""Which device an engine computes on."""

from __future__ import annotations

import os

import torch

from quantgate_engine.device_name import DeviceName
from quantgate_engine.errors import ConfigurationError

CPU = torch.device("cpu")
HIDING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""Environment variables that choose which GPUs a process sees, or that it sees none."""


def chosen_device(name: DeviceName) -> torch.device:
    """The first GPU that the process sees, or the CPU. Raises ConfigurationError for a GPU that is not there."""
    if name == "cpu":
        return CPU
    if torch.cuda.is_available():
        return torch.device("cuda", 0)
    if name == "cuda":
        hiding = ", ".join(f"{variable} is {os.environ[variable]!r}" for variable in HIDING if variable in os.environ)
        raise ConfigurationError(
            f"EngineConfig.device is 'cuda', and torch sees no GPU{f' ({hiding})' if hiding else ''}; install its "
            "build for the driver of this machine, or take 'cpu'."
        )
    return CPU


def shown_device(device: torch.device) -> str:
    """For manifests and reports: `cpu`, or the GPU's own name."""
    return device.type if device.type != "cuda" else torch.cuda.get_device_name(device)
