"""Which device an engine computes on."""

from __future__ import annotations

import torch

from quantgate_engine.device_name import DeviceName
from quantgate_engine.errors import ConfigurationError

CPU = torch.device("cpu")


def chosen_device(name: DeviceName) -> torch.device:
    """The first GPU that the process sees, or the CPU. Raises ConfigurationError for a GPU that is not there."""
    if name == "cpu":
        return CPU
    if torch.cuda.is_available():
        return torch.device("cuda", 0)
    if name == "cuda":
        raise ConfigurationError(
            "EngineConfig.device is 'cuda', and torch sees no GPU; install its build for the driver of this "
            "machine, or take 'cpu'."
        )
    return CPU


def shown_device(device: torch.device) -> str:
    """For manifests and reports: `cpu`, or the GPU's own name."""
    return device.type if device.type != "cuda" else torch.cuda.get_device_name(device)
