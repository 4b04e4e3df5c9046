"""Ctrl-C in tests, also where a shell started them in the background, which is to ignore it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt in the main thread, as in a program that a terminal started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
