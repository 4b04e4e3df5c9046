"""SIGTERM and SIGHUP end a command as Ctrl-C does, so that it cleans up and says how far it came."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Inside the block; signals that the parent process had ignored (`nohup`) stay ignored."""
    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    """By the handler of Ctrl-C, which an event loop replaces by one that ends its tasks in order.

    A shell's background jobs ignore Ctrl-C and have no handler of it.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


def leave(exit_code: int) -> NoReturn:
    """Ends the process; after an interrupt at once: a thread that still loads a model would hold it for as long.

    Whatever had to be closed was closed on the way here.
    """
    if exit_code == INTERRUPTED:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(exit_code)
    sys.exit(exit_code)
