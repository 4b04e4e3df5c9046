"""How much memory can still be had: of a device, or of the host within the limits that the process lives under."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import psutil
import torch

_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


class _Files(NamedTuple):
    """Names of a control group's files, and of the lines of `memory.stat` that count the page cache."""

    root: str
    limit: str
    used: str
    page_cache: tuple[str, ...]


# https://docs.kernel.org/admin-guide/cgroup-v2.html and https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
_UNIFIED = _Files("", "memory.max", "memory.current", ("inactive_file", "active_file"))
_MEMORY = _Files(
    "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")
)


def free_bytes(device: torch.device) -> int:
    """Bytes that an allocation on the device can take now.

    On a GPU, what torch has reserved and does not use is free for it too. On the host it is what the system has
    available without swapping, or what the limits of the process's control groups leave where that is less.
    """
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    return min([int(psutil.virtual_memory().available), *group_room(_OWN_GROUPS, _GROUPS)])


def group_room(own_groups: Path, groups: Path) -> Iterator[int]:
    """What each control group above the process leaves: limit - used + page cache, which gives way to allocations.

    own_groups: the file that names the process's groups; groups: where their files lie. Groups without a limit, and
    those of which the process sees no files (a container hides the path to its own), say nothing.
    """
    try:
        lines = own_groups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", maxsplit=2)
        files = _MEMORY if "memory" in controllers.split(",") else _UNIFIED
        if controllers and files is _UNIFIED:
            continue
        inside = PurePosixPath(path.lstrip("/"))
        for group in (inside, *inside.parents):
            room = _room(groups / files.root / group, files)
            if room is not None:
                yield room


def _room(group: Path, files: _Files) -> int | None:
    try:
        limit, used = (int((group / name).read_text()) for name in (files.limit, files.used))
        counts = dict(line.split(maxsplit=1) for line in (group / "memory.stat").read_text().splitlines())
        return max(0, limit - used + sum(int(counts[name]) for name in files.page_cache))
    except (OSError, ValueError, KeyError):
        # No such files, or the word `max` in place of a limit.
        return None
