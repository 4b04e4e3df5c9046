"""What the machine is: processor, instruction sets, cores, memory. Read when asked, never at import."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil

CPU_INFO = Path("/proc/cpuinfo")
CGROUP_MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")

# In the order of what they bring to matrix products; x86 names first, then Arm.
RELEVANT_FLAGS = (
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "asimdhp",
    "asimddp",
    "i8mm",
    "bf16",
    "sve",
    "sve2",
)


def cpu_name() -> str:
    fields = _cpu_info()
    return fields.get("model name") or fields.get("cpu model") or platform.processor() or platform.machine()


def instruction_sets() -> list[str]:
    """The flags that matter to matrix products; empty where the system does not tell."""
    fields = _cpu_info()
    flags = set((fields.get("flags") or fields.get("features") or "").split())
    return [flag for flag in RELEVANT_FLAGS if flag in flags]


def usable_cores() -> int:
    """Cores that this process may run on, which a container or taskset may limit below the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Physical memory, or the container's limit where that is lower."""
    physical = int(psutil.virtual_memory().total)
    try:
        return min(physical, int(CGROUP_MEMORY_LIMIT.read_text()))
    except (OSError, ValueError):
        # No such file outside a container; the word `max` where there is no limit.
        return physical


def _cpu_info() -> dict[str, str]:
    """The first processor's fields, names in lower case."""
    try:
        text = CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    first = text.split("\n\n", maxsplit=1)[0]
    pairs = (line.split(":", maxsplit=1) for line in first.splitlines() if ":" in line)
    return {name.strip().lower(): value.strip() for name, value in pairs}
