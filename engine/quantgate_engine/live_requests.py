"""The requests that have not ended: how they come in, are given up, and leave."""

from __future__ import annotations

from collections import Counter

from quantgate_engine.clock import Clock
from quantgate_engine.config import EngineConfig
from quantgate_engine.kv.kv_manager import KVManager
from quantgate_engine.kv.sharing import PrefixSharing
from quantgate_engine.request import TRANSITIONS, AbortCause, FinishReason, Request, RequestState
from quantgate_engine.scheduler.admission.admission import Admission
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.scheduler.scheduler import Scheduler, add_usage
from quantgate_engine.shown import shown_name
from quantgate_engine.step_result import StepResult
from quantgate_engine.timeouts import Deadlines


class LiveRequests:
    """Brings every request to exactly one end, by one way out (`_end`); what ends is noted in the step's result.

    A request is known by its id as soon as it is submitted (`by_id`), and received by the scheduler in the next step.
    Between the two it can be given up like any other, whatever the order in which threads leave their notes.
    """

    def __init__(
        self,
        by_id: dict[str, Request],
        config: EngineConfig,
        clock: Clock,
        scheduler: Scheduler,
        admission: Admission,
        kv: KVManager,
        sharing: PrefixSharing,
    ) -> None:
        self.aborts_by_cause: Counter[AbortCause] = Counter()
        self._by_id = by_id
        self._config = config
        self._clock = clock
        self._scheduler = scheduler
        self._admission = admission
        self._kv = kv
        self._sharing = sharing
        self._deadlines = Deadlines(config.timeouts)
        self._received: set[Request] = set()
        self._is_closing = False
        self._gives_up_at_ns: int | None = None

    def succeed(self, earlier: LiveRequests) -> None:
        """Goes on from another one, whose books are kept no more: its counts, and whether it takes new requests."""
        self.aborts_by_cause.update(earlier.aborts_by_cause)
        self._is_closing, self._gives_up_at_ns = earlier._is_closing, earlier._gives_up_at_ns

    def write_off(self, request: Request, cause: AbortCause) -> None:
        """Gives up a request of the books before these, which nothing here knows of."""
        if TRANSITIONS[request.state]:
            request.transition(RequestState.ABORTED)
            request.abort_cause = cause
            self.aborts_by_cause[cause] += 1

    def receive(self, request: Request, result: StepResult) -> None:
        """Hands a request to the scheduler, or rejects it."""
        if not self._is_live(request):
            # It was given up while it was on its way here.
            return
        try:
            request.error = self._refusal(request)
        except Exception as failure:  # noqa: BLE001 - whatever is wrong with it, the requests beside it go on
            request.error = (
                f"Request {shown_name(request.request_id)} was rejected: {type(failure).__name__}: {failure}."
            )
        self._scheduler.submit(request)
        self._received.add(request)
        if request.error is not None:
            self._end(request, RequestState.REJECTED, result)
        else:
            self._deadlines.watch(request)

    def abort(self, request: Request, cause: AbortCause, result: StepResult) -> None:
        """Gives a request up; does nothing where it has ended."""
        if self._is_live(request):
            self.give_up(request, cause, result)

    def stop(self, request: Request, result: StepResult) -> None:
        """Finishes a request that has drawn something; does nothing where it has not, or has ended."""
        if request.output and self._is_live(request):
            self.finish(request, FinishReason.STOP, self._clock.now_ns(), result)

    def change_caps(self, caps: Caps, result: StepResult) -> None:
        """Rejects those that can never run any more."""
        self._admission.change_caps(caps)
        for request in self._scheduler.refused():
            self._end(request, RequestState.REJECTED, result)

    def close(self, drain: bool, result: StepResult) -> None:
        """Takes nothing new; gives up what is here, now or (`drain`) when the time for that is over."""
        self._is_closing = True
        drain_s = self._config.timeouts.drain_s
        if not drain:
            self._give_up_all(result)
        elif drain_s is not None:
            self._gives_up_at_ns = self._clock.now_ns() + round(drain_s * 1e9)

    def reopen(self) -> None:
        self._is_closing, self._gives_up_at_ns = False, None

    def end_overdue(self, result: StepResult) -> None:
        """Ends whoever has run out of time: of its own, of the drain's, or of that for waiting."""
        now_ns = self._clock.now_ns()
        for request in self._deadlines.passed(now_ns):
            self.give_up(request, AbortCause.TIMEOUT, result)
        if self._gives_up_at_ns is not None and now_ns >= self._gives_up_at_ns:
            self._give_up_all(result)
        for request in self._scheduler.overdue(now_ns):
            waited_s = (now_ns - request.arrived_ns) / 1e9
            request.error = (
                f"Request {shown_name(request.request_id)} was rejected after waiting {waited_s:.3g} s for room; the "
                f"limit max_wait_s is {self._config.admission.max_wait_s:g} s. Send it again later."
            )
            self._end(request, RequestState.REJECTED, result)

    def finish(self, request: Request, reason: FinishReason, now_ns: int, result: StepResult) -> None:
        request.finish_reason, request.finished_ns = reason, now_ns
        self._admission.estimator.learn(len(request.output))
        self._end(request, RequestState.FINISHED, result)

    def give_up(self, request: Request, cause: AbortCause, result: StepResult) -> None:
        request.abort_cause = cause
        self.aborts_by_cause[cause] += 1
        self._end(request, RequestState.ABORTED, result)

    def _is_live(self, request: Request) -> bool:
        """Whether the id is still this request's: when one has ended, another may take it."""
        return self._by_id.get(request.request_id) is request

    def _refusal(self, request: Request) -> str | None:
        if self._is_closing:
            name = shown_name(request.request_id)
            return f"Request {name} was rejected: the engine is shutting down and takes no new requests."
        return self._admission.refusal(request) or self._admission.turned_away(
            request, lambda: self._scheduler.active, lambda: self._scheduler.waiting
        )

    def _give_up_all(self, result: StepResult) -> None:
        for request in self._scheduler.everyone():
            self.give_up(request, AbortCause.SHUTDOWN, result)

    def _end(self, request: Request, state: RequestState, result: StepResult) -> None:
        """The one way out: leaves the queue, gives back its blocks, and is forgotten."""
        if request in self._received:
            self._received.remove(request)
            self._scheduler.retire(request, state)
        else:
            request.transition(state)
        self._deadlines.forget(request)
        self._sharing.closed(request)
        session_id = request.terms.session_id if state is RequestState.FINISHED else None
        add_usage(request, self._kv.release(request.request_id, self._clock.now_ns(), session_id))
        del self._by_id[request.request_id]
        result.ended.append(request)
