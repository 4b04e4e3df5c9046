"""The streaming front: one thread steps the engine, any number of asyncio tasks read from it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress

from quantgate_engine.argument_checks import refuse_argument, require_count, require_kind, token_ids_of
from quantgate_engine.delivery import Delivery
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.compute_thread import repeat_on_compute_thread
from quantgate_engine.kv.holding import KVHolding
from quantgate_engine.llm import LLM
from quantgate_engine.outputs import StreamChunk, StreamEnd, chunk_of, end_of
from quantgate_engine.pool_state import PoolState
from quantgate_engine.request import AbortCause
from quantgate_engine.request_terms import DEFAULT_TERMS, RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.step_record import StepRecord
from quantgate_engine.step_result import StepLoad, StepResult
from quantgate_engine.stepped_engine import SteppedEngine


class AsyncLLM:
    """Streams requests from a loaded LLM, or from whatever steps as its core does.

    Between `start` and `stop` the step loop runs in its own thread and the engine serves nobody else. All methods
    belong to the event loop that called `start`; the thread's only way back is one call into the loop for each step.

    max_unread_chunks: chunks (a token each) that a stream keeps for its reader; one that falls further behind ends with
    cause backpressure. None keeps all of them.

    Raises ConfigurationError where it is given something else.
    """

    def __init__(self, llm: LLM | SteppedEngine, max_unread_chunks: int | None = None) -> None:
        if not isinstance(llm, LLM | SteppedEngine):
            raise refuse_argument("AsyncLLM: llm", llm, "an LLM, or an engine that steps as its core does")
        require_count("AsyncLLM: max_unread_chunks", max_unread_chunks, 1, optional=True)
        self._core: SteppedEngine = llm.core if isinstance(llm, LLM) else llm
        # A simulated engine may sleep through its steps, and the compute thread is not for that.
        self._repeat = repeat_on_compute_thread if isinstance(llm, LLM) else _repeat_here
        self._max_unread_chunks = max_unread_chunks
        self._deliveries: dict[str, Delivery] = {}
        self._forgetting: deque[asyncio.Event] = deque()
        self._wake = threading.Event()
        self._stopping = self._draining = False
        self._failure: str | None = None
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        """Starts the step loop. Raises RunError where the engine is already driven by someone."""
        self._core.claim()
        self._core.reopen()
        self._stopping = self._draining = False
        self._failure = None
        self._loop, self._thread_ended = asyncio.get_running_loop(), asyncio.Event()
        # A daemon, so that a program which dies without `stop` is not kept alive by its engine.
        self._thread = threading.Thread(target=self._run_steps, name="quantgate-engine-steps", daemon=True)
        self._thread.start()

    async def stop(self, *, drain: bool = False) -> None:
        """Ends what is still running (cause: shutdown) and the thread; does nothing where it is not started.

        drain: what is running may come to its own end first, within `TimeoutSettings.drain_s`.
        """
        if self._thread is None:
            return
        self._core.shut_down(drain=drain)
        self._draining = drain
        self._stopping = True
        self._wake.set()
        await self._thread_ended.wait()
        # A second caller may have waited beside the first.
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._core.relinquish()

    @property
    def failure(self) -> str | None:
        """What broke the step loop, so that the engine takes no requests; None while it is well."""
        return self._failure

    @property
    def load(self) -> StepLoad:
        """Queues and cache as they stand."""
        return self._core.load

    async def stream(
        self,
        request_id: str,
        token_ids: Sequence[int],
        params: SamplingParams,
        terms: RequestTerms = DEFAULT_TERMS,
    ) -> AsyncGenerator[StreamChunk, None]:
        """Yields the request's tokens as they are drawn; the last chunk, and only it, has its `end` set.

        The request arrives at the engine when the first chunk is asked for. Closing the iterator early (or cancelling
        the task that waits on it) is a disconnect: its blocks are free at the end of the running step. Raises RunError
        where the engine is not running, ConfigurationError where a live request has the same id or an argument is of
        another kind.
        """
        if self._thread is None or self._stopping or self._failure is not None:
            raise RunError(f"The engine takes no requests: {self._failure or 'it is not running'}.")
        require_kind("stream: request_id", request_id, str)
        if request_id in self._deliveries:
            raise ConfigurationError(f"Request id {request_id!r} belongs to a stream that is open; choose another id.")
        delivery = self._deliveries[request_id] = Delivery(self._max_unread_chunks)
        try:
            self._core.add_request(request_id, token_ids_of("stream: token_ids", token_ids), params, terms)
            self._wake.set()
            while True:
                chunk = await delivery.get()
                if chunk.end is not None:
                    # The request has ended: its id is free before the reader has closed this generator.
                    del self._deliveries[request_id]
                yield chunk
                if chunk.end is not None:
                    return
        finally:
            if delivery.close():
                del self._deliveries[request_id]
                self.abort(request_id, AbortCause.DISCONNECT)

    def abort(self, request_id: str, cause: AbortCause = AbortCause.CANCELLED) -> None:
        """Gives a request up; its stream ends with status `aborted` and the cause. Does nothing where it has ended."""
        self._core.abort(request_id, cause)
        self._wake.set()

    def finish(self, request_id: str) -> None:
        """Ends a request whose reader has all it wants; its stream ends as `finished`, by a stop."""
        self._core.finish(request_id)
        self._wake.set()

    def refusal(
        self, request_id: str, token_ids: Sequence[int], params: SamplingParams, terms: RequestTerms = DEFAULT_TERMS
    ) -> str | None:
        """Why such a request would be rejected, in one sentence; None where it would run."""
        return self._core.refusal(request_id, tuple(token_ids), params, terms)

    async def forget(self) -> None:
        """Returns when the engine has come to rest and dropped what requests that have ended left in it.

        See `EngineCore.forget`. Does nothing where the engine is not running.
        """
        if self._thread is None or self._thread_ended.is_set():
            return
        forgotten = asyncio.Event()
        self._forgetting.append(forgotten)
        self._wake.set()
        await forgotten.wait()

    @property
    def pool_states(self) -> Mapping[str, PoolState]:
        """The pools by name, as they stand; none where one engine serves all."""
        return self._core.pool_states

    @property
    def degrades(self) -> bool:
        """Whether admission may cut from a request that is above a cap."""
        return self._core.degrades

    @property
    def max_sequence_tokens(self) -> int:
        """Prompt plus output of the longest request that can ever run: by context, caps and KV cache."""
        return self._core.max_sequence_tokens

    def output_room(self, token_ids: Sequence[int], params: SamplingParams, terms: RequestTerms = DEFAULT_TERMS) -> int:
        """The most output tokens, up to `params.max_tokens`, with which such a request can ever run; at least 1.

        It is for requests that leave their length to the engine. Raises ConfigurationError for an unknown SLO class.
        """
        return self._core.output_room(tuple(token_ids), params, terms)

    @property
    def num_kv_blocks(self) -> int:
        """Blocks of the KV cache's pool."""
        return self._core.num_kv_blocks

    @property
    def max_active_requests(self) -> int:
        """Requests that may hold KV at once."""
        return self._core.max_active_requests

    @property
    def slo_classes(self) -> tuple[str, ...]:
        """Names of the SLO classes that requests may have, the most urgent first."""
        return self._core.slo_classes

    @property
    def aborts_by_cause(self) -> Mapping[AbortCause, int]:
        """Requests given up so far; causes that never came up may be missing."""
        return self._core.aborts_by_cause

    def take_steps(self) -> list[StepRecord]:
        """The records of the steps since the last call, in order."""
        return self._core.take_steps()

    def kv_stays(self) -> list[KVHolding]:
        """Who holds KV blocks, and of those that have let go who held most of them; while the engine is stopped."""
        return [*self._core.kv_holdings(), *self._core.kv_greatest_holders()]

    def _run_steps(self) -> None:
        try:
            while not self._stopping or (self._draining and self._core.has_work):
                # Cleared before the check: work that comes after the check finds the flag down and raises it.
                self._wake.clear()
                if self._core.has_work:
                    self._repeat(self._step)
                elif self._forgetting:
                    self._core.forget()
                    self._post(self._forgetting.popleft().set)
                elif not self._stopping:
                    # Sessions end by the clock, whether or not anybody asks for something meanwhile.
                    self._wake.wait(self._core.expire_sessions())
            self._core.abort_all(AbortCause.SHUTDOWN)
            while self._core.has_work:
                self._publish(self._core.step())
        except Exception as failure:  # noqa: BLE001 - readers must learn of it: nobody else watches this thread
            self._post(self._break_off, f"{type(failure).__name__}: {failure}")
        finally:
            self._post(self._note_end)

    def _step(self) -> bool:
        """Whether another one is to follow at once."""
        self._publish(self._core.step())
        return self._core.has_work and (self._draining or not self._stopping)

    def _publish(self, result: StepResult) -> None:
        chunks = {request.request_id: chunk_of(request, token) for request, token in result.tokens}
        for request in result.ended:
            drawn = chunks.get(request.request_id, StreamChunk())
            chunks[request.request_id] = StreamChunk(drawn.token_ids, end_of(request), drawn.logprobs)
        if chunks:
            self._loop.call_soon_threadsafe(self._deliver, chunks)

    def _post(self, call: Callable[..., None], *arguments: str) -> None:
        # A loop that is closed already has no reader left to tell.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    def _deliver(self, chunks: Mapping[str, StreamChunk]) -> None:
        for request_id, chunk in chunks.items():
            delivery = self._deliveries.get(request_id)
            if delivery is not None and not delivery.put(chunk):
                self.abort(request_id, AbortCause.BACKPRESSURE)

    def _note_end(self) -> None:
        """Nobody waits for a thread that has ended."""
        self._thread_ended.set()
        while self._forgetting:
            self._forgetting.popleft().set()

    def _break_off(self, failure: str) -> None:
        self._failure = failure
        end = StreamEnd(status="failed", abort_cause=AbortCause.ERROR.value, error=failure)
        self._deliver({request_id: StreamChunk(end=end) for request_id in self._deliveries})


def _repeat_here(work: Callable[[], bool]) -> None:
    """As `repeat_on_compute_thread`, on the caller's own thread."""
    while work():
        pass
