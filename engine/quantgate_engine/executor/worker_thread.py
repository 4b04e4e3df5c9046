"""A thread that carries out what it is handed, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from quantgate_engine.errors import RunError

Result = TypeVar("Result")


class WorkerThread:
    """Starts with its first piece of work, and goes on until it is closed.

    It is a daemon, unlike the threads of a ThreadPoolExecutor, which take nothing more from the moment at which the
    main thread ends: threads that outlive that one, and exit handlers, go on computing. Whoever makes one closes it
    before the interpreter is torn down, so that it does not die amid its work.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._pieces: SimpleQueue[_Piece[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on it."""
        return threading.current_thread() is self._thread

    @property
    def is_wanted(self) -> bool:
        """Whether anything waits for what it is at; asked from its own work."""
        return not self._pieces.empty()

    def run(self, work: Callable[[], Result]) -> Result:
        """Hands back what `work` returns or raises. Raises RunError where the program is ending."""
        piece = _Piece(work)
        # So that nothing is handed over behind the last piece, where nobody would ever carry it out.
        with self._lock:
            if self._is_closed or not self._has_started():
                raise RunError(
                    "The engine computes nothing more, because the program is ending; call it before the end, or in an "
                    "exit handler that is registered after quantgate_engine was imported."
                )
            self._pieces.put(piece)
        try:
            return piece.outcome.result()
        finally:
            # Else what was raised, whose traceback holds this frame, and the frame would keep each other alive.
            del piece

    def close(self) -> None:
        """Returns when what was handed over is done; from now on nothing more is taken."""
        with self._lock:
            self._is_closed = True
            self._pieces.put(None)
        if self._thread is not None:
            self._thread.join()

    def _has_started(self) -> bool:
        if self._thread is None:
            thread = threading.Thread(target=self._carry_out, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # Newer Pythons start no threads any more while the interpreter shuts down.
                return False
            self._thread = thread
        return True

    def _carry_out(self) -> None:
        while True:
            piece = self._pieces.get()
            if piece is None:
                return
            piece.carry_out()
            # While it waits for the next one, a result, which may be large, is the caller's alone.
            del piece


class _Piece(Generic[Result]):
    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self.outcome: Future[Result] = Future()

    def carry_out(self) -> None:
        try:
            result = self._work()
        except BaseException as failure:  # noqa: BLE001 - whatever it is, it belongs to the caller
            self.outcome.set_exception(failure)
            # As in `run`: the traceback holds this frame.
            del self
        else:
            self.outcome.set_result(result)
