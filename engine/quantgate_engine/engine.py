"""The step loop: requests in, tokens out, one step at a time."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque

from quantgate_engine.clock import Clock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine_totals import EngineTotals
from quantgate_engine.engine_view import EngineView
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.base import Executor
from quantgate_engine.malformed_request import malformation
from quantgate_engine.request import AbortCause, Request
from quantgate_engine.request_terms import DEFAULT_TERMS, RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.setting_checks import require_type
from quantgate_engine.step_record import StepRecord
from quantgate_engine.step_result import StepResult, StepWork, make_record

# Hours of steps. Who never takes the records loses the oldest (their indices show the gap), never the memory.
_STEP_LOG_LIMIT = 250_000


class EngineCore(EngineView):
    """Owns the requests, the books of the KV cache, and the executor.

    `add_request`, `abort`, `finish`, `set_caps` and `shut_down` may be called from any thread at any time, also while a
    step runs: they are notes in an inbox that `step` reads at its start and again when the executor is done. `step`
    belongs to one thread. So an abort gives its blocks back at the end of the running step at the latest, and what that
    step drew for it is dropped.
    """

    def __init__(self, executor: Executor, config: EngineConfig, clock: Clock) -> None:
        super().__init__(executor, config, clock)
        self.totals = EngineTotals()
        self._ranks = itertools.count()
        self._steps: deque[StepRecord] = deque(maxlen=_STEP_LOG_LIMIT)
        self._driver = threading.Lock()
        self._driving_process = os.getpid()

    def claim(self) -> None:
        """Makes the caller the one that steps the engine; raises RunError where somebody is already."""
        if self._driver.acquire(blocking=False):
            self._driving_process = os.getpid()
        elif self._driving_process == os.getpid():
            raise RunError(
                "The engine is busy: a started AsyncLLM or a call in another thread drives it; stop that one first."
            )
        else:
            raise RunError(
                "The engine was driven when this process was forked, and its requests are the parent's; load the model "
                "anew here, or fork while nothing drives it."
            )

    def relinquish(self) -> None:
        """Ends the caller's claim."""
        self._driver.release()

    def take_steps(self) -> list[StepRecord]:
        """The records of the steps since the last call, in order."""
        return [self._steps.popleft() for _ in range(len(self._steps))]

    def add_request(
        self,
        request_id: str,
        prompt_token_ids: tuple[int, ...],
        params: SamplingParams,
        terms: RequestTerms = DEFAULT_TERMS,
    ) -> Request:
        """Takes a request in; one that could never run ends as rejected in the next step.

        Raises ConfigurationError where something is of the wrong type, a live request has the same id, or the engine
        does not have its SLO class. Nothing is known of the request then.
        """
        wrong = malformation(request_id, prompt_token_ids, params, terms)
        if wrong is not None:
            raise ConfigurationError(wrong)
        classes = [slo_class.name for slo_class in self._config.batching.slo_classes]
        if terms.slo_class is not None and terms.slo_class not in classes:
            raise ConfigurationError(
                f"Request {request_id!r} has the SLO class {terms.slo_class!r}; expected one of {', '.join(classes)}."
            )
        now_ns, rank, ends = self.clock.now_ns(), next(self._ranks), self._end_token_ids(params)
        request = Request(request_id, prompt_token_ids, params, now_ns, terms, rank, ends)
        if self._admission.takes_whole(request):
            self._sharing.hash_prompt(request)
        # Of two threads that bring the same id, one gets it.
        if self._requests.setdefault(request_id, request) is not request:
            raise ConfigurationError(
                f"Request id {request_id!r} belongs to a request that has not ended; choose another id."
            )
        self._inbox.append(lambda live, result: live.receive(request, result))
        return request

    def abort(self, request_id: str, cause: AbortCause) -> None:
        """Gives a request up, in whatever state it is; does nothing where it has ended or never was.

        That is the request that has the id now: one that takes the id later is not touched. Raises ConfigurationError
        where id or cause are of the wrong type.
        """
        require_type("The request id of an abort", request_id, str)
        require_type("The cause of an abort", cause, AbortCause)
        request = self._requests.get(request_id)
        if request is not None:
            self._inbox.append(lambda live, result: live.abort(request, cause, result))

    def finish(self, request_id: str) -> None:
        """Ends a request whose reader has all it wants (a stop string came up): finished, as if it had stopped itself.

        What is drawn for it from then on is dropped. Does nothing where it has ended or has drawn no token. Raises
        ConfigurationError where the id is of the wrong type.
        """
        require_type("The request id of a finish", request_id, str)
        request = self._requests.get(request_id)
        if request is not None:
            self._inbox.append(lambda live, result: live.stop(request, result))

    def abort_all(self, cause: AbortCause) -> None:
        for request_id in tuple(self._requests):
            self.abort(request_id, cause)

    def set_caps(self, caps: Caps) -> None:
        """Changes the hard caps from the next step on.

        Waiting requests that can then never run are rejected; those that run go on. Raises ConfigurationError where a
        step's budget has no token for each active request, or the model does not take such contexts.
        """
        if caps.max_active_requests > self._config.max_step_tokens:
            raise ConfigurationError(
                f"Caps.max_active_requests is {caps.max_active_requests}; expected at most max_step_tokens "
                f"({self._config.max_step_tokens})."
            )
        if caps.max_context_tokens > self.executor.max_context_tokens:
            raise ConfigurationError(
                f"Caps.max_context_tokens is {caps.max_context_tokens}; expected at most "
                f"{self.executor.max_context_tokens}, the executor's limit."
            )
        self._wanted_caps = caps
        self._inbox.append(lambda live, result: live.change_caps(caps, result))

    def shut_down(self, *, drain: bool) -> None:
        """From the next step on, new requests are rejected; what is here runs to its end (`drain`) or is given up.

        A drain that takes longer than `TimeoutSettings.drain_s` is given up too (cause: shutdown).
        """
        self._inbox.append(lambda live, result: live.close(drain, result))

    def reopen(self) -> None:
        """Takes requests again after a shutdown; for the thread that steps.

        Whoever is still here was left by one that steps no more, and is given up (cause: shutdown).
        """
        if self._requests:
            self._begin_anew(AbortCause.SHUTDOWN)
        self._read_inbox(StepResult())
        self._live.reopen()

    def forget(self) -> None:
        """Drops what requests that have ended left behind; for the thread that steps.

        That is the blocks of sessions, cached prefixes that nobody holds, and the lengths that admission has learned:
        requests that come next to an idle engine meet it as if they were its first.
        """
        self._kv.forget(self.clock.now_ns())
        self._admission.estimator.forget()

    def session_since_ns(self, session_id: str) -> int | None:
        """Since when the session keeps its last turn's blocks here; None where it keeps none."""
        return self._kv.sessions.last_turn_ns(session_id)

    def refusal(
        self,
        request_id: str,
        prompt_token_ids: tuple[int, ...],
        params: SamplingParams,
        terms: RequestTerms = DEFAULT_TERMS,
    ) -> str | None:
        """Why such a request would be rejected, in one sentence; None where it would run."""
        wrong = malformation(request_id, prompt_token_ids, params, terms)
        if wrong is not None:
            return wrong
        return self._admission.refusal(Request(request_id, prompt_token_ids, params, self.clock.now_ns(), terms))

    @property
    def degrades(self) -> bool:
        """Whether admission cuts from a request that is above a cap: so it is good to know where its turns start."""
        return self._config.admission.over_cap == "degrade"

    @property
    def max_sequence_tokens(self) -> int:
        """Prompt plus output of the longest request that can ever run here."""
        return self._admission.max_sequence_tokens

    def output_room(
        self, prompt_token_ids: tuple[int, ...], params: SamplingParams, terms: RequestTerms = DEFAULT_TERMS
    ) -> int:
        """The most output tokens, up to `params.max_tokens`, with which such a request can ever run; at least 1."""
        return self._admission.output_room(Request("", prompt_token_ids, params, self.clock.now_ns(), terms))

    def expire_sessions(self) -> float | None:
        """Lets go of the sessions whose time is over, as each step does too; for the thread that steps.

        Returns the seconds until it is over for the next one; None where no session is kept.
        """
        now_ns = self.clock.now_ns()
        self._kv.sessions.expire(now_ns)
        next_ns = self._kv.sessions.next_expiry_ns()
        return None if next_ns is None else (next_ns - now_ns) / 1e9

    def check_integrity(self) -> None:
        """Raises BlockPoolError unless free + held + cached = total, every holder is known, and the promises add up."""
        self._kv.check()

    def step(self) -> StepResult:
        """Runs one step. Where the executor raises, the requests of the step end as failed and the engine goes on.

        Where it raises MemoryError, the next step is smaller, and only one that cannot be smaller fails. Where the step
        itself breaks, it raises, and no request is left: half a step's books can be trusted with none.
        """
        try:
            started_ns = self.clock.now_ns()
            result = StepResult()
            self._read_inbox(result)
            self._kv.sessions.expire(started_ns)
            plan = self._scheduler.plan(started_ns)
            load = self.load
            work = StepWork(plan, computed=plan)
            sampled = self._computation.compute(work, result) if plan.has_work else []
            self._computation.count(work)
            self._read_inbox(result)
            self._computation.take_tokens(work.computed, sampled, result)
            if not self._requests:
                self._kv.check()
            if plan.has_work or plan.preemptions or result.ended:
                duration_ns = self.clock.now_ns() - started_ns
                record = make_record(self.totals.steps, started_ns, duration_ns, load, work, result.ended)
                self.totals.add(record)
                self._steps.append(record)
            return result
        except BaseException:
            # Whatever ends a step amid its books: an interrupt leaves no more of them than an error does.
            self._begin_anew(AbortCause.ERROR)
            raise

    def _begin_anew(self, cause: AbortCause) -> None:
        """Gives up every request, and opens new books; caps and counts are kept, and whether requests are taken.

        The inbox is kept too. Notes on requests that are given up here come to nothing, and all others hold: who comes
        in meanwhile, from another thread, comes to the new books.
        """
        earlier = self._live
        self._open_books()
        self._live.succeed(earlier)
        for request in tuple(self._requests.values()):
            del self._requests[request.request_id]
            self._live.write_off(request, cause)

    def _read_inbox(self, result: StepResult) -> None:
        while self._inbox:
            self._inbox.popleft()(self._live, result)
        self._live.end_overdue(result)

    def _end_token_ids(self, params: SamplingParams) -> frozenset[int]:
        """Tokens that end a request: the model's own unless it ignores them, and those that it names.

        A forced continuation ends with its last token, whatever it is made of.
        """
        if params.forced_token_ids:
            return frozenset()
        return frozenset(params.stop_token_ids).union(() if params.ignore_eos else self.executor.eos_token_ids)
