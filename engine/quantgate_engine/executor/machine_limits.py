"""What a machine cannot give is refused with numbers, before the operating system refuses it in its own words."""

from __future__ import annotations

import os

import torch

from quantgate_engine.errors import ConfigurationError

THREADS_PER_CORE = 4
"""More than that only wait for each other; thousands cannot even be started."""


def require_threads(threads: int) -> None:
    """Raises ConfigurationError for more compute threads than the machine's cores can carry."""
    cores = os.cpu_count() or 1
    if threads > THREADS_PER_CORE * cores:
        raise ConfigurationError(
            f"threads is {threads}, and this machine has {cores} cores; expected at most {THREADS_PER_CORE * cores}."
        )


def require_cache_memory(needed_bytes: int, device: torch.device, what: str) -> None:
    """Raises ConfigurationError where a KV cache of `needed_bytes` is larger than the memory of the device.

    Host memory counts whole, not what is free of it: unused blocks of the cache are never touched and cost none.
    """
    there = _device_bytes(device)
    if needed_bytes > there:
        raise ConfigurationError(
            f"{what} needs {needed_bytes / 1e9:,.1f} GB, and the device has {there / 1e9:,.1f} GB; lower "
            "num_kv_blocks, or max_active_requests and max_context_tokens."
        )


def _device_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
