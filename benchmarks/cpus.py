"""A CPU for the other side of a connection, which stands for another machine."""

from __future__ import annotations

import os


def set_cpu_aside() -> int | None:
    """A CPU on which this process will not run from now on; None where it has only one, or cannot choose.

    Over the loopback interface, the kernel likes to wake a client on the CPU of the server that wrote to it, where it
    waits for up to a time slice (3 ms) until the server sleeps.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        return None
    os.sched_setaffinity(0, cpus[:-1])
    return cpus[-1]
