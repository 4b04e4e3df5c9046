"""What else used the processors while something was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import psutil

Result = TypeVar("Result")

NAMED_PROCESSES = 3
LEAST_NAMED_CORES = 0.02


@dataclass(frozen=True, slots=True)
class Noise:
    """In cores: CPU seconds of other processes, and those that a hypervisor took, over the seconds of the measurement.

    others: the largest ones that lived through it, by name.
    """

    other_cores: float
    stolen_cores: float
    others: dict[str, float]


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far: of the machine, of one tree of processes, and of each process outside of it."""

    busy_s: float
    stolen_s: float
    own_s: float
    others: dict[tuple[int, str], float]


def usage(pid: int) -> Usage:
    """`pid` is the root of the tree that is measured."""
    tree = _tree(pid)
    times = psutil.cpu_times()
    others: dict[tuple[int, str], float] = {}
    own_s = 0.0
    for process in psutil.process_iter(["pid", "name", "cpu_times"]):
        cpu = process.info["cpu_times"]
        if cpu is None:
            continue
        if process.info["pid"] in tree:
            own_s += cpu.user + cpu.system
        else:
            others[process.info["pid"], process.info["name"]] = cpu.user + cpu.system
    idle_s = times.idle + getattr(times, "iowait", 0.0)
    stolen_s = getattr(times, "steal", 0.0)
    # Guests' time is part of user's.
    busy_s = sum(times) - idle_s - stolen_s - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return Usage(busy_s, stolen_s, own_s, others)


def noise_between(before: Usage, after: Usage, seconds: float) -> Noise:
    grown = {
        name: (cpu_s - before.others.get((pid, name), cpu_s)) / seconds for (pid, name), cpu_s in after.others.items()
    }
    largest = sorted(grown.items(), key=lambda each: -each[1])[:NAMED_PROCESSES]
    busy_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return Noise(
        other_cores=round(max(0.0, busy_s / seconds), 3),
        stolen_cores=round(max(0.0, (after.stolen_s - before.stolen_s) / seconds), 3),
        others={name: round(cores, 3) for name, cores in largest if cores >= LEAST_NAMED_CORES},
    )


def with_noise(pid: int, measured: Callable[[], Result], seconds: Callable[[], float]) -> tuple[Result, Noise]:
    """Runs it between two looks at the machine; `seconds` reads a clock."""
    before, started = usage(pid), seconds()
    result = measured()
    elapsed = seconds() - started
    return result, noise_between(before, usage(pid), elapsed)


def _tree(pid: int) -> set[int]:
    try:
        root = psutil.Process(pid)
        return {pid, *(child.pid for child in root.children(recursive=True))}
    except psutil.NoSuchProcess:
        return {pid}
