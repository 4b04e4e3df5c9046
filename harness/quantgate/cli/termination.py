"""SIGTERM and SIGHUP end a command as Ctrl-C does, so that it cleans up and says how far it came."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
_STANDARD_ERROR = 2


def interrupts_end_at_once() -> None:
    """While the program is being read, and nothing has begun that would have to be cleaned up.

    It holds until `termination_interrupts`; signals that the parent process had ignored stay ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end_at_once)


def _end_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    with suppress(OSError):
        os.write(_STANDARD_ERROR, b"quantgate: Interrupted.\n")
    os._exit(INTERRUPTED)


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Inside the block; signals that the parent process had ignored (`nohup`), or a command ignores, stay ignored."""
    unclaimed = (signal.SIG_DFL, _end_at_once)
    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) in unclaimed]
    for number in ours:
        signal.signal(number, _interrupt)
    if signal.getsignal(signal.SIGINT) == _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) == _interrupt:
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
