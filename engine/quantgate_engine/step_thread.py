"""One run of the step loop in a thread of its own, from the claim on the engine to its release."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress

from quantgate_engine.delivery import Delivery
from quantgate_engine.errors import RunError
from quantgate_engine.executor.compute_thread import on_compute_thread, repeat_on_compute_thread
from quantgate_engine.outputs import StreamChunk, StreamEnd, chunk_of, end_of
from quantgate_engine.request import AbortCause, Request
from quantgate_engine.step_result import StepResult
from quantgate_engine.stepped_engine import SteppedEngine

_LOOP_CHECK_S = 1.0
"""Seconds between two looks of an idle engine at whether its event loop is still there."""


class StepThread:
    """Steps an engine for the readers in `deliveries`, until it is told to end or their event loop is no more.

    Its methods belong to that loop; the thread's only way back is one call into the loop for each step. The claim on
    the engine is the thread's: it gives it up with its last act, however it ends.
    """

    def __init__(self, core: SteppedEngine, *, on_compute_thread: bool) -> None:
        """on_compute_thread: take the steps there. A simulated engine may sleep through its own."""
        self.deliveries: dict[str, Delivery] = {}
        self.failure: str | None = None
        self.is_ending = False
        self._core = core
        self._repeat = repeat_on_compute_thread if on_compute_thread else _repeat_here
        self._draining = False
        self._forgetting: deque[asyncio.Event] = deque()
        self._wake = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._opened, self._ended = asyncio.Event(), asyncio.Event()
        self._has_let_go = False
        # A daemon, so that a program which dies without `end` is not kept alive by its engine.
        self._thread = threading.Thread(target=self._run, name="quantgate-engine-steps", daemon=True)
        self._guard = self._end_with_the_loop()

    async def start(self) -> None:
        """Returns when the engine takes requests. Raises RunError where somebody drives it already, or it is broken."""
        self._core.claim()
        try:
            self._thread.start()
        except BaseException:
            self._core.relinquish()
            raise
        try:
            await anext(self._guard)
            await self._opened.wait()
        except BaseException:
            self.is_ending = True
            self._wake.set()
            raise
        if self.failure is not None:
            raise RunError(f"The engine did not start: {self.failure}.")

    async def end(self, *, drain: bool) -> None:
        """Returns when the thread has ended, and nobody is left unless somebody drives the engine anew."""
        # One that broke ends by itself, and the engine may be somebody else's already.
        if self.failure is None and not self._has_let_go:
            self._core.shut_down(drain=drain)
        self._draining = drain
        self.is_ending = True
        self._wake.set()
        if asyncio.get_running_loop() is self._loop:
            await self._ended.wait()
        self._thread.join()

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    async def forget(self) -> None:
        """Returns when the engine has come to rest and dropped what ended requests left in it, or has ended."""
        if self._ended.is_set():
            return
        forgotten = asyncio.Event()
        self._forgetting.append(forgotten)
        self._wake.set()
        await forgotten.wait()

    async def _end_with_the_loop(self) -> AsyncGenerator[None, None]:
        """Whoever ends a loop as asyncio.run does, closes what is suspended there first: this."""
        try:
            yield
        finally:
            await self.end(drain=False)

    def _run(self) -> None:
        try:
            # There, because what an interrupted call has left comes first.
            on_compute_thread(self._core.reopen)
            self._tell(self._opened.set)
            self._step_to_the_end()
        except BaseException as failure:  # noqa: BLE001 - readers must learn of it: nobody else watches this thread
            kind, words = type(failure).__name__, str(failure)
            self._tell(self._break_off, f"{kind}: {words}" if words else kind)
        finally:
            try:
                self._has_let_go = True
                self._core.relinquish()
            finally:
                self._tell(self._note_end)

    def _step_to_the_end(self) -> None:
        while self._goes_on or (self._draining and self._core.has_work and not self._loop.is_closed()):
            # Cleared before the check: work that comes after the check finds the flag down and raises it.
            self._wake.clear()
            if self._core.has_work:
                self._repeat(self._step)
            elif self._forgetting:
                self._core.forget()
                self._tell(self._forgetting.popleft().set)
            elif self._goes_on:
                # Sessions end by the clock, whether or not anybody asks for something meanwhile.
                next_s = self._core.expire_sessions()
                self._wake.wait(_LOOP_CHECK_S if next_s is None else min(next_s, _LOOP_CHECK_S))
        self._core.abort_all(AbortCause.SHUTDOWN)
        while self._core.has_work:
            self._publish(self._core.step())

    @property
    def _goes_on(self) -> bool:
        return not self.is_ending and not self._loop.is_closed()

    def _step(self) -> bool:
        """Whether another one is to follow at once."""
        self._publish(self._core.step())
        return self._core.has_work and (self._draining or not self.is_ending) and not self._loop.is_closed()

    def _publish(self, result: StepResult) -> None:
        chunks = {request: chunk_of(request, token) for request, token in result.tokens}
        for request in result.ended:
            drawn = chunks.get(request, StreamChunk())
            chunks[request] = StreamChunk(drawn.token_ids, end_of(request), drawn.logprobs)
        if chunks:
            self._tell(self._deliver, chunks)

    def _tell(self, call: Callable[..., object], *arguments: object) -> None:
        # A loop that is closed has no reader left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    def _deliver(self, chunks: Mapping[Request, StreamChunk]) -> None:
        for request, chunk in chunks.items():
            delivery = self.deliveries.get(request.request_id)
            # Another reader may have opened a stream of the same id since.
            if delivery is not None and delivery.request is request and not delivery.put(chunk):
                self._core.abort(request.request_id, AbortCause.BACKPRESSURE)
                self._wake.set()

    def _note_end(self) -> None:
        """Nobody waits for a thread that has ended."""
        self._opened.set()
        self._ended.set()
        while self._forgetting:
            self._forgetting.popleft().set()

    def _break_off(self, failure: str) -> None:
        self.failure = failure
        end = StreamEnd(status="failed", abort_cause=AbortCause.ERROR.value, error=failure)
        for delivery in self.deliveries.values():
            delivery.put(StreamChunk(end=end))


def _repeat_here(work: Callable[[], bool]) -> None:
    """As `repeat_on_compute_thread`, on the caller's own thread."""
    while work():
        pass
