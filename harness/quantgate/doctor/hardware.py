"""Processor, memory, disk and graphics processors."""

from __future__ import annotations

import shutil

import psutil

from quantgate.doctor.check import Check
from quantgate.machine import cpu_name, instruction_sets, memory_bytes, usable_cores
from quantgate_engine.counted import counted
from quantgate_kernels.cache_root import cache_root

QUICK_SUITE_MEMORY_BYTES = 4 * 1024**3
FETCH_DISK_BYTES = 1_000_000_000
"""The wheel, the file in it and the converted folder, with room for results."""


def cpu_check() -> Check:
    flags = instruction_sets()
    found = f"{cpu_name()}, {counted(usable_cores(), 'usable core')}, {' '.join(flags) or 'instruction sets unknown'}"
    return Check("CPU", "ok", found, required=True)


def thread_check() -> Check:
    import torch

    threads, cores = torch.get_num_threads(), usable_cores()
    if threads > cores:
        return Check(
            "torch threads",
            "note",
            f"{threads} on {counted(cores, 'usable core')}",
            advice=f"set OMP_NUM_THREADS={cores}: more threads than cores slow every arm down, unevenly",
        )
    return Check("torch threads", "ok", f"{threads} on {counted(cores, 'usable core')}")


def memory_check() -> Check:
    available = int(psutil.virtual_memory().available)
    found = f"{memory_bytes() / 1e9:.1f} GB, {available / 1e9:.1f} GB available"
    if available < QUICK_SUITE_MEMORY_BYTES:
        advice = f"the quick suite may take up to {QUICK_SUITE_MEMORY_BYTES / 1e9:.1f} GB; close other programs"
        return Check("memory", "note", found, advice=advice)
    return Check("memory", "ok", found)


def disk_check() -> Check:
    root = cache_root()
    existing = next(place for place in (root, *root.absolute().parents) if place.exists())
    free = shutil.disk_usage(existing).free
    found = f"{free / 1e9:.1f} GB free at {root}"
    if free < FETCH_DISK_BYTES:
        advice = "fetching the model takes about 0.5 GB for a while; set QUANTGATE_CACHE to a folder on another disk"
        return Check("disk", "note", found, advice=advice)
    return Check("disk", "ok", found)


def gpu_check() -> Check:
    import torch

    if not torch.cuda.is_available():
        return Check("GPU", "note", "torch sees none", advice="the arms run on the CPU")
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    advice = None if len(names) == 1 else "arms run on the first; CUDA_VISIBLE_DEVICES chooses another"
    return Check("GPU", "ok", ", ".join(names), advice=advice)
