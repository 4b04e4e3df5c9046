"""The step loop: requests in, tokens out, one step at a time."""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass

from quantgate_engine.clock import Clock
from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.base import Executor, SampledToken
from quantgate_engine.kv.kv_manager import KVManager
from quantgate_engine.request import AbortCause, FinishReason, Request, RequestState
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission import GuaranteedAdmission
from quantgate_engine.scheduler.scheduler import Scheduler
from quantgate_engine.scheduler.step_plan import StepPlan
from quantgate_engine.step_record import StepRecord
from quantgate_engine.step_result import StepLoad, StepResult, make_record

_NOTHING_COMPUTED = StepPlan(decode=(), prefill=())

# Hours of steps. Who never takes the records loses the oldest (their indices show the gap), never the memory.
_STEP_LOG_LIMIT = 250_000


@dataclass(frozen=True, slots=True)
class _AbortNote:
    request_id: str
    cause: AbortCause


@dataclass(frozen=True, slots=True)
class _EnoughNote:
    request_id: str


class EngineCore:
    """Owns the requests, the books of the KV cache, and the executor.

    `add_request`, `abort` and `finish` may be called from any thread at any time, also while a step runs: they are
    notes in an inbox that `step` reads at its start and again when the executor is done. `step` belongs to one thread.
    So an abort gives its blocks back at the end of the running step at the latest, and what that step drew for it is
    dropped.
    """

    def __init__(self, executor: Executor, config: EngineConfig, clock: Clock) -> None:
        self.executor = executor
        self.clock = clock
        self.aborts_by_cause: Counter[AbortCause] = Counter()
        self._kv = KVManager(executor.num_blocks, executor.block_size)
        self._admission = GuaranteedAdmission(self._kv, executor.max_context_tokens, executor.vocab_size)
        self._scheduler = Scheduler(config, self._kv, self._admission)
        self._requests: dict[str, Request] = {}
        self._inbox: deque[Request | _AbortNote | _EnoughNote] = deque()
        self._steps: deque[StepRecord] = deque(maxlen=_STEP_LOG_LIMIT)
        self._num_steps = 0
        self._driver = threading.Lock()

    @property
    def has_work(self) -> bool:
        """Whether `step` has anything to do."""
        return bool(self._inbox or self._requests)

    @property
    def load(self) -> StepLoad:
        """Queues and cache as they stand; any thread may look."""
        return StepLoad(
            active_requests=self._scheduler.num_active,
            waiting_requests=self._scheduler.num_waiting,
            used_tokens=self._kv.stored_tokens,
            allocated_blocks=self._kv.held_blocks,
            slot_utilization=self._kv.slot_utilization,
        )

    @property
    def held_blocks(self) -> int:
        """KV blocks that requests hold now."""
        return self._kv.held_blocks

    def claim(self) -> None:
        """Makes the caller the one that steps the engine; raises RunError where somebody is already."""
        if not self._driver.acquire(blocking=False):
            raise RunError(
                "The engine is busy: a started AsyncLLM or a call in another thread drives it; stop that one first."
            )

    def relinquish(self) -> None:
        """Ends the caller's claim."""
        self._driver.release()

    def take_steps(self) -> list[StepRecord]:
        """The records of the steps since the last call, in order."""
        return [self._steps.popleft() for _ in range(len(self._steps))]

    def add_request(self, request_id: str, prompt_token_ids: tuple[int, ...], params: SamplingParams) -> Request:
        """Takes a request in; one that could never run ends as rejected in the next step.

        Raises ConfigurationError where a live request has the same id.
        """
        if request_id in self._requests:
            raise ConfigurationError(
                f"Request id {request_id!r} belongs to a request that has not ended; choose another id."
            )
        request = Request(request_id, prompt_token_ids, params, arrived_ns=self.clock.now_ns())
        self._requests[request_id] = request
        self._inbox.append(request)
        return request

    def abort(self, request_id: str, cause: AbortCause) -> None:
        """Gives a request up, in whatever state it is; does nothing where it has ended or never was."""
        self._inbox.append(_AbortNote(request_id, cause))

    def finish(self, request_id: str) -> None:
        """Ends a request whose reader has all it wants (a stop string came up): finished, as if it had stopped itself.

        What is drawn for it from then on is dropped. Does nothing where it has ended or has drawn no token.
        """
        self._inbox.append(_EnoughNote(request_id))

    def abort_all(self, cause: AbortCause) -> None:
        for request_id in tuple(self._requests):
            self.abort(request_id, cause)

    def refusal(self, request_id: str, prompt_token_ids: tuple[int, ...], params: SamplingParams) -> str | None:
        """Why such a request would be rejected, in one sentence; None where it would run."""
        return self._admission.refusal(Request(request_id, prompt_token_ids, params, arrived_ns=self.clock.now_ns()))

    def check_integrity(self) -> None:
        """Raises BlockPoolError unless each block is free or has one live owner, and the promises add up."""
        self._kv.check()

    def step(self) -> StepResult:
        """Runs one step. Where the executor raises, the requests of the step end as failed and the engine goes on."""
        started_ns = self.clock.now_ns()
        result = StepResult()
        self._read_inbox(result)
        plan = self._scheduler.plan(started_ns)
        load = self.load
        computed, out_of_memory = plan, False
        sampled: list[SampledToken | None] = []
        if plan.sequences:
            try:
                sampled = self._execute(plan)
            except Exception as failure:  # noqa: BLE001 - whatever a kernel raises, the requests of later steps go on
                computed, out_of_memory = _NOTHING_COMPUTED, isinstance(failure, MemoryError)
                self._fail(plan, failure, result)
        self._advance(computed)
        self._read_inbox(result)
        self._take_tokens(computed, sampled, result)
        if not self._requests:
            self._kv.check()
        if plan.sequences or result.ended:
            duration_ns = self.clock.now_ns() - started_ns
            self._steps.append(
                make_record(
                    self._num_steps, started_ns, duration_ns, load, computed, result.ended, out_of_memory=out_of_memory
                )
            )
            self._num_steps += 1
        return result

    def _read_inbox(self, result: StepResult) -> None:
        while self._inbox:
            note = self._inbox.popleft()
            if isinstance(note, Request):
                self._receive(note, result)
            elif note.request_id in self._requests:
                self._follow(note, self._requests[note.request_id], result)

    def _follow(self, note: _AbortNote | _EnoughNote, request: Request, result: StepResult) -> None:
        if isinstance(note, _AbortNote):
            self._give_up(request, note.cause, result)
        elif request.state is RequestState.DECODING:
            self._finish(request, FinishReason.STOP, self.clock.now_ns(), result)

    def _receive(self, request: Request, result: StepResult) -> None:
        request.error = self._admission.refusal(request)
        self._scheduler.submit(request)
        if request.error is not None:
            self._end(request, RequestState.REJECTED, result)

    def _execute(self, plan: StepPlan) -> list[SampledToken | None]:
        sampled = self.executor.execute(plan.sequences)
        if len(sampled) != len(plan.sequences):
            raise RuntimeError(f"the executor answered {len(sampled)} of {len(plan.sequences)} sequences")
        return sampled

    def _fail(self, plan: StepPlan, failure: Exception, result: StepResult) -> None:
        for sequence in plan.sequences:
            request = self._requests[sequence.request_id]
            request.error = f"{type(failure).__name__}: {failure}"
            self._give_up(request, AbortCause.ERROR, result)

    def _advance(self, computed: StepPlan) -> None:
        for sequence in computed.sequences:
            self._requests[sequence.request_id].num_computed_tokens += len(sequence.token_ids)

    def _take_tokens(self, computed: StepPlan, sampled: list[SampledToken | None], result: StepResult) -> None:
        now_ns = self.clock.now_ns()
        for sequence, token in zip(computed.sequences, sampled, strict=True):
            request = self._requests.get(sequence.request_id)
            if request is not None and token is not None:
                self._take_token(request, token, now_ns, result)

    def _take_token(self, request: Request, token: SampledToken, now_ns: int, result: StepResult) -> None:
        if request.state is RequestState.PREFILL:
            request.first_token_ns = now_ns
            self._scheduler.begin_decoding(request)
        request.output.append(token)
        result.tokens.append((request, token))
        reason = self._finish_reason(request, token.token_id)
        if reason is not None:
            self._finish(request, reason, now_ns, result)

    def _finish_reason(self, request: Request, token_id: int) -> FinishReason | None:
        """`ignore_eos` ignores the model's own end tokens; the stop tokens that the request names always count."""
        params = request.params
        if params.forced_token_ids:
            return FinishReason.LENGTH if len(request.output) == len(params.forced_token_ids) else None
        if token_id in params.stop_token_ids or (not params.ignore_eos and token_id in self.executor.eos_token_ids):
            return FinishReason.STOP
        return FinishReason.LENGTH if len(request.output) >= params.max_tokens else None

    def _finish(self, request: Request, reason: FinishReason, now_ns: int, result: StepResult) -> None:
        request.finish_reason, request.finished_ns = reason, now_ns
        self._end(request, RequestState.FINISHED, result)

    def _give_up(self, request: Request, cause: AbortCause, result: StepResult) -> None:
        request.abort_cause = cause
        self.aborts_by_cause[cause] += 1
        self._end(request, RequestState.ABORTED, result)

    def _end(self, request: Request, state: RequestState, result: StepResult) -> None:
        """The one way out: leaves the queue, gives back its blocks, and is forgotten."""
        self._scheduler.retire(request, state)
        usage = self._kv.release(request.request_id, self.clock.now_ns())
        request.kv_peak_blocks, request.kv_block_seconds = usage.peak_blocks, usage.block_seconds
        del self._requests[request.request_id]
        result.ended.append(request)
