"""A lock that a forked child finds free."""

from __future__ import annotations

import os
import threading
import weakref


class ForkLock:
    """As `threading.Lock` in a `with` statement; in a child process nobody holds it, for who did so is not there."""

    def __init__(self) -> None:
        self.renew()
        _LOCKS.add(self)

    def renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *failure: object) -> None:
        self._lock.release()


_LOCKS: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in _LOCKS:
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
