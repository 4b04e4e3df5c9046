"""What vendors publish of a device of each architecture, and what a kernel's work takes there at least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quantgate_kernels.gpu.ahead.work import KernelWork, Width


@dataclass(frozen=True, slots=True)
class Published:
    """Peaks of dense matrix products at the boost clock, in operations per second, and of memory, as in data sheets."""

    device: str
    bytes_per_s: float
    ops_per_s: dict[Width, float]


PUBLISHED = {
    "sm80": Published("A100 SXM 80 GB", 2.039e12, {"16-bit": 312e12, "int8": 624e12}),
    "sm90": Published("H100 SXM", 3.35e12, {"16-bit": 989e12, "int8": 1979e12}),
    "sm100": Published("HGX B200", 7.7e12, {"16-bit": 2250e12, "int8": 4500e12}),
    "gfx942": Published("MI300X", 5.3e12, {"16-bit": 1307.4e12, "int8": 2614.9e12}),
}
"""NVIDIA prints most of its figures with sparsity; these are half of those."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """seconds: no device with these peaks is faster. memory_share, arithmetic_share: of either peak, at that speed.

    One of the two shares is 1. How much of it the kernel reaches, only a measurement on the device can tell.
    """

    device: str
    seconds: float
    limited_by: Literal["memory", "arithmetic"]
    memory_share: float
    arithmetic_share: float


def roofline(work: KernelWork, architecture: str) -> Roofline:
    peaks = PUBLISHED[architecture]
    memory = work.bytes_moved / peaks.bytes_per_s
    arithmetic = work.operations / peaks.ops_per_s[work.width] if work.width else 0.0
    seconds = max(memory, arithmetic)
    limited_by: Literal["memory", "arithmetic"] = "memory" if memory >= arithmetic else "arithmetic"
    return Roofline(peaks.device, seconds, limited_by, memory / seconds, arithmetic / seconds)
