"""What a machine cannot give is refused with numbers, before the operating system refuses it in its own words."""

from __future__ import annotations

import os

import torch

from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.free_memory import free_bytes

THREADS_PER_CORE = 4
"""More than that only wait for each other; thousands cannot even be started."""


def require_threads(threads: int) -> None:
    """Raises ConfigurationError for more compute threads than the machine's cores can carry."""
    cores = os.cpu_count() or 1
    if threads > THREADS_PER_CORE * cores:
        raise ConfigurationError(
            f"threads is {threads}, and this machine has {counted(cores, 'core')}; expected at most "
            f"{THREADS_PER_CORE * cores}."
        )


def require_memory(needed_bytes: int, device: torch.device, what: str, advice: str) -> None:
    """Raises ConfigurationError where `needed_bytes` are more than can still be had on the device.

    A cache is zeroed when it is made, and zeroing touches every page: all of it is taken at once, so that it counts for
    whatever is asked for next, and no step ever waits for the system to find a page.
    """
    there = free_bytes(device)
    if needed_bytes > there:
        raise ConfigurationError(
            f"{what} needs {shown_size(needed_bytes)}, and {shown_size(there)} of the device's memory can be had; "
            f"{advice}."
        )


def shown_size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"
