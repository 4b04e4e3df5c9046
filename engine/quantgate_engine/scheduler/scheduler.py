"""Decides what each step computes. Plain Python: the same scheduler runs on any executor and in the simulator."""

from __future__ import annotations

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.kv.kv_manager import KVManager
from quantgate_engine.request import Request, RequestState
from quantgate_engine.scheduler.admission import GuaranteedAdmission
from quantgate_engine.scheduler.queues import RequestQueues
from quantgate_engine.scheduler.step_plan import StepPlan


class Scheduler:
    """Continuous batching under a token budget.

    Each step takes one token of every decoding request first, so that a long prompt cannot stall them; prefill gets
    what is left of the budget, in chunks: requests already started, then new ones. A waiting request that does not fit
    is passed over for later ones that do, until `config.max_overtakes` of them have: from then on nobody passes it,
    and as those that run come to their end its turn comes.
    """

    def __init__(self, config: EngineConfig, kv: KVManager, admission: GuaranteedAdmission) -> None:
        self._config = config
        self._kv = kv
        self._admission = admission
        self._queues = RequestQueues()

    @property
    def num_active(self) -> int:
        return self._queues.num_active

    @property
    def num_waiting(self) -> int:
        return self._queues.count(RequestState.WAITING)

    def submit(self, request: Request) -> None:
        self._queues.add(request)

    def begin_decoding(self, request: Request) -> None:
        self._queues.move(request, RequestState.DECODING)

    def retire(self, request: Request, target: RequestState) -> None:
        """Takes the request out of its queue, to a final state."""
        self._queues.move(request, target)

    def plan(self, now_ns: int) -> StepPlan:
        """The next step. Admits requests, and gives each sequence the blocks that it is about to fill."""
        decode = [self._schedule(request, 1, now_ns) for request in self._queues.in_state(RequestState.DECODING)]
        budget = self._config.max_step_tokens - len(decode)
        prefill: list[ScheduledSequence] = []
        for request in self._queues.in_state(RequestState.PREFILL):
            budget -= self._schedule_chunk(request, budget, now_ns, prefill)
        self._admit(budget, now_ns, prefill)
        return StepPlan(decode=tuple(decode), prefill=tuple(prefill))

    def _admit(self, budget: int, now_ns: int, prefill: list[ScheduledSequence]) -> None:
        if self.num_active >= self._config.max_active_requests or budget == 0:
            return
        passed_over: list[Request] = []
        for request in self._queues.in_state(RequestState.WAITING):
            if not self._admission.fits(request):
                passed_over.append(request)
            else:
                self._admission.admit(request, now_ns)
                request.admitted_ns = now_ns
                self._queues.move(request, RequestState.PREFILL)
                budget -= self._schedule_chunk(request, budget, now_ns, prefill)
                for overtaken in passed_over:
                    overtaken.times_overtaken += 1
            # Whoever overtakes a request also overtakes those before it, so the first has been overtaken most often.
            aged = bool(passed_over) and passed_over[0].times_overtaken >= self._config.max_overtakes
            if aged or budget == 0 or self.num_active >= self._config.max_active_requests:
                return

    def _schedule_chunk(self, request: Request, budget: int, now_ns: int, prefill: list[ScheduledSequence]) -> int:
        """Schedules as much of the prompt as the budget allows; returns the tokens that it took."""
        chunk = min(budget, request.num_uncomputed_tokens)
        if chunk > 0:
            prefill.append(self._schedule(request, chunk, now_ns))
        return chunk

    def _schedule(self, request: Request, num_tokens: int, now_ns: int) -> ScheduledSequence:
        end = request.num_computed_tokens + num_tokens
        return ScheduledSequence(
            request_id=request.request_id,
            token_ids=request.next_token_ids(num_tokens),
            start_position=request.num_computed_tokens,
            block_table=self._kv.grow(request.request_id, end, now_ns),
            sample=end == request.num_tokens,
            params=request.params,
            num_drawn=len(request.output),
        )
