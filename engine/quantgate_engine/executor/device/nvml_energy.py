"""The energy that an NVIDIA GPU has taken, as its driver counts it (NVML, by the package `nvidia-ml-py`)."""

from __future__ import annotations

from collections.abc import Callable

Joules = Callable[[], float | None]
"""Since the driver was loaded: differences count. None where it is not told."""

_PER_JOULE = 1000


def energy_counter(uuid: str) -> Joules:
    """Of the GPU that torch calls by this uuid, whatever number it has here.

    Tells None where the package or the driver's library is missing, and for GPUs without the counter: those before
    Volta, and parts of one (MIG).
    """
    try:
        import pynvml
    except ImportError:
        return lambda: None
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    except pynvml.NVMLError:
        return lambda: None

    def joules() -> float | None:
        try:
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / _PER_JOULE
        except pynvml.NVMLError:
            return None

    return joules
