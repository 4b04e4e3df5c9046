"""The one thread of this process that runs torch.

OpenMP keeps a team of workers for every thread that ever entered a parallel region. As soon as the teams together have
more members than there are cores, idle workers go to sleep at once instead of spinning, and each of the hundreds of
small regions of a step pays for waking them: on two cores a decode step took 58 ms in place of 33. So loading, steps
and teacher forcing of all engines, and the arithmetic of whoever works on their logits, take turns on one thread.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar, cast

Result = TypeVar("Result")

THREAD_NAME = "quantgate-compute"

STRETCH_ROUNDS = 16
"""Rounds that share a hand-over in `repeat_on_compute_thread`: enough that it costs nothing, and few, because a program
that ends waits for what the thread is at."""


class _ComputeThread:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=THREAD_NAME)
        self._latest: Callable[[], Future[Any] | None] = lambda: None

    def run(self, work: Callable[[], Result]) -> Result:
        future = self._pool.submit(work)
        # Weakly: a result may be large, and is the caller's alone.
        self._latest = weakref.ref(future)
        return future.result()

    def is_wanted(self) -> bool:
        """Whether somebody waits for the work that runs there now. Who is missed has his turn when the stretch ends."""
        latest = self._latest()
        return latest is not None and not latest.running() and not latest.done()


@cache
def _compute_thread() -> _ComputeThread:
    return _ComputeThread()


def on_compute_thread(work: Callable[[], Result]) -> Result:
    """Runs `work` there and hands back what it returns or raises; called from that thread, it simply runs it."""
    if threading.current_thread().name.startswith(THREAD_NAME):
        return work()
    return _compute_thread().run(work)


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
            if _compute_thread().is_wanted():
                break
        return True

    try:
        while on_compute_thread(stretch):
            pass
    except BaseException:
        interrupted.set()
        # What is handed over is done in order, so this comes back after the running round.
        on_compute_thread(lambda: None)
        raise


def each_on_compute_thread(items: Iterable[Result]) -> Iterator[Result]:
    """Iterates `items` so that whatever produces them runs on the compute thread."""
    iterator = iter(items)
    ended = object()
    while (item := on_compute_thread(lambda: next(iterator, ended))) is not ended:
        yield cast("Result", item)
