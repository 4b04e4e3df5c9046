"""The one thread of this process that runs torch.

OpenMP keeps a team of workers for every thread that ever entered a parallel region. As soon as the teams together have
more members than there are cores, idle workers go to sleep at once instead of spinning, and each of the hundreds of
small regions of a step pays for waking them: on two cores a decode step took 58 ms in place of 33. So loading, steps
and teacher forcing of all engines, and the arithmetic of whoever works on their logits, take turns on one thread.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar, cast

from quantgate_engine.errors import RunError
from quantgate_engine.executor.worker_thread import WorkerThread

Result = TypeVar("Result")

THREAD_NAME = "quantgate-compute"

STRETCH_ROUNDS = 16
"""Rounds that share a hand-over in `repeat_on_compute_thread`: enough that it costs nothing. A stretch of them ends
sooner where somebody else waits for the thread, or the program for its end."""

_worker = WorkerThread(THREAD_NAME)


def _work_anew() -> None:
    """In a child process, which was born with the forking thread alone.

    The new thread is new to OpenMP too, which makes it a team of its own; the parent's, whose workers are not here,
    belongs to a thread that is not here either.
    """
    global _worker
    _worker = WorkerThread(THREAD_NAME)


os.register_at_fork(after_in_child=_work_anew)
# Registered when this is imported, and so carried out after the exit handlers of whoever imports it.
atexit.register(lambda: _worker.close())


def on_compute_thread(work: Callable[[], Result]) -> Result:
    """Runs `work` there and hands back what it returns or raises; called from that thread, it simply runs it."""
    return work() if _worker.is_current else _worker.run(work)


def repeat_on_compute_thread(work: Callable[[], bool]) -> None:
    """Runs `work` there, again and again, until it returns False.

    Rounds follow each other without a hand-over, each of which takes a step's threads out of their stride; where
    somebody else waits for the thread, his turn comes after the running round. What a round raises comes out here. An
    interrupt of the caller comes out when the running round is over, and no further one begins.
    """
    interrupted = threading.Event()

    def stretch() -> bool:
        for _ in range(STRETCH_ROUNDS):
            if interrupted.is_set() or not work():
                return False
            if _worker.is_wanted:
                break
        return True

    try:
        while on_compute_thread(stretch):
            pass
    except BaseException:
        interrupted.set()
        # What is handed over is done in order, so this comes back after the running round. Where nothing can be handed
        # over any more, what came out of the rounds says so already.
        with suppress(RunError):
            on_compute_thread(lambda: None)
        raise


def each_on_compute_thread(items: Iterable[Result]) -> Iterator[Result]:
    """Iterates `items` so that whatever produces them runs on the compute thread."""
    iterator = iter(items)
    ended = object()
    while (item := on_compute_thread(lambda: next(iterator, ended))) is not ended:
        yield cast("Result", item)
