"""What a replay calls outside itself: to bring arms up, to watch their servers, and to tell how far it has come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from quantgate.replay.interleave import Cell
from quantgate.replay.progress import ReplayProgress
from quantgate.replay.replay_log import CellResult


@dataclass(frozen=True, slots=True)
class ReplayHooks:
    """Called in the driver's thread where they are given.

    on_progress: after each request and each cell; on_cell: when a cell's rows are in the log, also for a cell that was
    cut short; thread_cpu_ns: CPU time of the calling thread (`time.thread_time_ns`).

    bring_up: awaited with an arm's id before its target is started; before_cell: awaited before each cell, when no
    request is running (empties a prefix cache); watch_cell: entered before the first request of a cell and left after
    its last one has ended; last_words: what is known of the death of an arm's server, a sentence or None.
    """

    on_progress: Callable[[ReplayProgress], None] | None = None
    on_cell: Callable[[CellResult], None] | None = None
    thread_cpu_ns: Callable[[], int] | None = None
    bring_up: Callable[[str], Awaitable[None]] | None = None
    before_cell: Callable[[Cell], Awaitable[None]] | None = None
    watch_cell: Callable[[Cell], AbstractAsyncContextManager[None]] | None = None
    last_words: Callable[[str], Awaitable[str | None]] | None = None
