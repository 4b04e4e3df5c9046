"""The GPU, its driver and clocks, and the versions of what computes on it."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from benchmarks.on_gpu.place import Place

ASKED = (
    "name", "driver_version", "memory.total", "clocks.sm", "clocks.max.sm", "clocks.mem", "clocks.max.mem",
    "power.draw", "power.limit", "temperature.gpu",
)  # fmt: skip
"""Of nvidia-smi."""


def described(place: Place) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "architecture": place.architecture,
        "processors": place.processors,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("torch", "triton", "numpy")},
    }
    if place.dry:
        return {**shown, "name": "none: nothing was run"}
    properties = torch.cuda.get_device_properties(place.torch_device)
    return {
        **shown,
        "name": properties.name,
        "memory_bytes": properties.total_memory,
        "cache_bytes": getattr(properties, "L2_cache_size", None),
        "cuda": torch.version.cuda,
        "rocm": torch.version.hip,
    }


def clocks(place: Place) -> dict[str, str] | None:
    """What the driver says of the GPU at this moment; None where nobody can be asked."""
    if place.dry or torch.version.hip is not None:
        return None
    command = ["nvidia-smi", f"--query-gpu={','.join(ASKED)}", "--format=csv,noheader", "--id=0"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(zip(ASKED, (part.strip() for part in answer.splitlines()[0].split(",")), strict=False))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
