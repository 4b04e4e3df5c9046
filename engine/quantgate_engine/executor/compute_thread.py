"""The one thread of this process that runs torch.

OpenMP keeps a team of workers for every thread that ever entered a parallel region. As soon as the teams together have
more members than there are cores, idle workers go to sleep at once instead of spinning, and each of the hundreds of
small regions of a step pays for waking them: on two cores a decode step took 58 ms in place of 33. So loading, steps
and teacher forcing of all engines, and the arithmetic of whoever works on their logits, take turns on one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar, cast

Result = TypeVar("Result")

THREAD_NAME = "quantgate-compute"


@cache
def _compute_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=THREAD_NAME)


def on_compute_thread(work: Callable[[], Result]) -> Result:
    """Runs `work` there and hands back what it returns or raises; called from that thread, it simply runs it."""
    if threading.current_thread().name.startswith(THREAD_NAME):
        return work()
    return _compute_thread().submit(work).result()


def each_on_compute_thread(items: Iterable[Result]) -> Iterator[Result]:
    """Iterates `items` so that whatever produces them runs on the compute thread."""
    iterator = iter(items)
    ended = object()
    while (item := on_compute_thread(lambda: next(iterator, ended))) is not ended:
        yield cast("Result", item)
