"""All processes of a server: its session and its descendants."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil


def live_members(leader_pid: int) -> list[psutil.Process]:
    """Processes of the leader's session, and its descendants that left the session; zombies are not alive.

    The session is searched too because a process whose parent has ended is nobody's descendant any more.
    """
    members = {process.pid: process for process in _descendants(leader_pid)}
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            if os.getsid(pid) == leader_pid:
                members[pid] = psutil.Process(pid)
    return [process for process in members.values() if is_alive(process)]


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs: a zombie does not, nor another process that got its number."""
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def signal_all(processes: Iterable[psutil.Process], number: int) -> None:
    """Processes that have ended meanwhile, or that are another user's by now, are passed over."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)


def peak_resident_bytes(processes: Iterable[psutil.Process]) -> int:
    """Sum of each process's largest resident set so far.

    The kernel keeps that peak (VmHWM in proc_pid_status(5)), so that nothing has to be sampled while requests run. The
    sum is an upper bound of the tree's own peak: the peaks need not coincide, and shared pages count in each process.
    """
    return sum(_peak_resident_bytes(process.pid) for process in processes)


def _peak_resident_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    peak = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(peak.split()[1]) * 1024
