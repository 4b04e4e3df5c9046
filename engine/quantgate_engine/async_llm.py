"""The streaming front: one thread steps the engine, any number of asyncio tasks read from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial

from quantgate_engine.argument_checks import refuse_argument, require_count, require_kind, token_ids_of
from quantgate_engine.delivery import Delivery
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.kv.holding import KVHolding
from quantgate_engine.llm import LLM
from quantgate_engine.outputs import StreamChunk
from quantgate_engine.pool_state import PoolState
from quantgate_engine.request import AbortCause
from quantgate_engine.request_terms import DEFAULT_TERMS, RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.step_record import StepRecord
from quantgate_engine.step_result import StepLoad
from quantgate_engine.step_thread import StepThread
from quantgate_engine.stepped_engine import SteppedEngine
from quantgate_engine.text.stream_stop import StreamStop


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
        self._llm = llm if isinstance(llm, LLM) else None
        self._on_compute_thread = self._llm is not None
        self._max_unread_chunks = max_unread_chunks
        self._steps: StepThread | None = None

    async def start(self) -> None:
        """Starts the step loop. Raises RunError where the engine is already driven by someone."""
        steps = StepThread(self._core, on_compute_thread=self._on_compute_thread)
        await steps.start()
        self._steps = steps

    async def stop(self, *, drain: bool = False) -> None:
        """Ends what is still running (cause: shutdown) and the thread; does nothing where it is not started.

        drain: what is running may come to its own end first, within `TimeoutSettings.drain_s`. An event loop that
        asyncio.run ends without a stop is ended with one, and one that is closed otherwise soon after.
        """
        if self._steps is not None:
            await self._steps.end(drain=drain)

    @property
    def failure(self) -> str | None:
        """What broke the step loop, so that the engine takes no requests; None while it is well."""
        return self._steps.failure if self._steps is not None else None

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
        the task that waits on it) is a disconnect: its blocks and its id are free at the end of the running step. The
        token that completes one of `params.stop` is the last. Raises RunError where the engine is not running,
        ConfigurationError where a live request has the same id, an argument is of another kind, or there are stop
        strings and no LLM, to whose text they belong.
        """
        stop = await self._stop_strings(request_id, params)
        steps = self._steps
        if steps is None or steps.is_ending or steps.failure is not None:
            raise RunError(f"The engine takes no requests: {self.failure or 'it is not running'}.")
        require_kind("stream: request_id", request_id, str)
        if request_id in steps.deliveries:
            raise ConfigurationError(f"Request id {request_id!r} belongs to a stream that is open; choose another id.")
        delivery = steps.deliveries[request_id] = Delivery(self._max_unread_chunks)
        try:
            prompt = token_ids_of("stream: token_ids", token_ids)
            delivery.request = self._core.add_request(request_id, prompt, params, terms)
            steps.wake()
            while True:
                chunk = await delivery.get()
                if chunk.end is not None:
                    # The request has ended: its id is free before the reader has closed this generator.
                    del steps.deliveries[request_id]
                shown = chunk if stop is None else stop.read(chunk)
                if shown is not None:
                    yield shown
                if chunk.end is not None:
                    return
        finally:
            if delivery.close():
                del steps.deliveries[request_id]
                # Where it was not taken, or the engine was started anew, the id may be somebody else's.
                if delivery.request is not None and self._steps is steps:
                    self.abort(request_id, AbortCause.DISCONNECT)

    def abort(self, request_id: str, cause: AbortCause = AbortCause.CANCELLED) -> None:
        """Gives a request up; its stream ends with status `aborted` and the cause. Does nothing where it has ended."""
        self._core.abort(request_id, cause)
        self._wake()

    def finish(self, request_id: str) -> None:
        """Ends a request whose reader has all it wants; its stream ends as `finished`, by a stop."""
        self._core.finish(request_id)
        self._wake()

    def refusal(
        self, request_id: str, token_ids: Sequence[int], params: SamplingParams, terms: RequestTerms = DEFAULT_TERMS
    ) -> str | None:
        """Why such a request would be rejected, in one sentence; None where it would run."""
        return self._core.refusal(request_id, tuple(token_ids), params, terms)

    async def forget(self) -> None:
        """Returns when the engine has come to rest and dropped what requests that have ended left in it.

        See `EngineCore.forget`. Does nothing where the engine is not running.
        """
        if self._steps is not None:
            await self._steps.forget()

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

    async def _stop_strings(self, request_id: str, params: SamplingParams) -> StreamStop | None:
        # What is of another kind is refused with the rest of the request.
        if not isinstance(params, SamplingParams) or not params.stop:
            return None
        llm = self._llm
        if llm is None:
            raise ConfigurationError(
                "SamplingParams.stop holds strings, and this engine knows tokens alone; expected stop_token_ids, or an "
                "AsyncLLM over an LLM."
            )
        # Beside the event loop: the first time it is read from its files.
        tokenizer = await asyncio.to_thread(lambda: llm.tokenizer)
        return StreamStop(tokenizer, params.stop, partial(self.finish, request_id))

    def _wake(self) -> None:
        if self._steps is not None:
            self._steps.wake()
