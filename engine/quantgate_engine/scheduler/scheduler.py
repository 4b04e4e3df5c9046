"""Decides what each step computes. Plain Python: the same scheduler runs on any executor and in the simulator."""

from __future__ import annotations

import itertools

from quantgate_engine.config import EngineConfig
from quantgate_engine.kv.block_table import KVUsage
from quantgate_engine.kv.kv_manager import KVManager
from quantgate_engine.kv.sharing import PrefixSharing
from quantgate_engine.kv.start import Start
from quantgate_engine.request import Request, RequestState
from quantgate_engine.scheduler.admission.admission import Admission
from quantgate_engine.scheduler.batching.modes import BATCH_MODES, StepKind
from quantgate_engine.scheduler.batching.prefill_limits import PrefillLimits
from quantgate_engine.scheduler.batching.step_budget import StepBudget
from quantgate_engine.scheduler.places import Places
from quantgate_engine.scheduler.preemption.modes import PREEMPTION_MODES
from quantgate_engine.scheduler.preemption.victims import VICTIM_POLICIES, choose_victim
from quantgate_engine.scheduler.queues import RequestQueues
from quantgate_engine.scheduler.step_plan import StepDraft, StepPlan
from quantgate_engine.scheduler.waiting import WaitingRequests

MOST_MISFITS = 8
"""Waiting requests that find no memory in a step before it looks no further: to look at one takes time, and behind
eight that did not fit there is seldom one that does."""


class Scheduler:
    """Continuous batching under a token budget.

    A step takes one token of every decoding request first, so that a long prompt cannot stall them; prefill gets what
    is left of the budget, in chunks: requests already started, then new ones, as the batch mode allows. A waiting
    request that does not fit is passed over for later ones that do, until `config.max_overtakes` of them have: from
    then on nobody passes it, and as those that run come to their end its turn comes.

    Where a decoding request needs a block and none is left, a victim gives way, and in that step nobody is let in.
    """

    def __init__(self, config: EngineConfig, kv: KVManager, sharing: PrefixSharing, admission: Admission) -> None:
        self._config = config
        self._kv = kv
        self._sharing = sharing
        self._admission = admission
        self._waiting = WaitingRequests(
            config.batching.slo_classes, config.batching.length_buckets, config.max_overtakes
        )
        self._queues = RequestQueues(self._waiting)
        self._places = Places(config.batching.slo_classes, self._waiting.class_of)
        self._mode = BATCH_MODES[config.batching.mode]()
        self._limits = PrefillLimits(config.batching)
        self._budget = StepBudget(config.max_step_tokens)
        self._preempt = PREEMPTION_MODES[config.preemption.mode]
        self._victim_policy = VICTIM_POLICIES[config.preemption.victim]
        self._admission_numbers = itertools.count(1)

    @property
    def num_active(self) -> int:
        return self._queues.num_active

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def active(self) -> list[Request]:
        return self._queues.active()

    @property
    def waiting(self) -> list[Request]:
        return self._waiting.everyone()

    def everyone(self) -> list[Request]:
        """All live requests."""
        return self.active + self.waiting

    def submit(self, request: Request) -> None:
        self._queues.add(request)

    def begin_decoding(self, request: Request) -> None:
        self._queues.move(request, RequestState.DECODING)

    def retire(self, request: Request, target: RequestState) -> None:
        """Takes the request out of its queue, to a final state."""
        self._queues.move(request, target)

    def overdue(self, now_ns: int) -> list[Request]:
        """Requests that have waited for their first step longer than admission lets them."""
        max_wait_s = self._admission.settings.max_wait_s
        return [] if max_wait_s is None else self._waiting.overdue(now_ns, round(max_wait_s * 1e9))

    def refused(self) -> list[Request]:
        """Waiting requests that can never run any more, because a cap has changed; their `error` says why.

        Those that ran before are left alone: with nothing else active they fit whatever the caps are.
        """
        waiting = sorted(self._waiting.never_started(), key=lambda request: request.rank)
        for request in waiting:
            self._waiting.remove(request)
            request.error = self._admission.refusal(request)
            self._waiting.add(request)
        return [request for request in waiting if request.error is not None]

    def recover(self) -> None:
        """The last step was computed."""
        self._budget.recover()

    def shrink(self, plan: StepPlan) -> tuple[Request, ...]:
        """The executor ran out of memory in `plan`: makes the next one smaller, or returns who stands in the way.

        That is a step's only request, or a prompt that may not be cut, which is the first prefill of its step. Nothing
        of the failed step is lost: what it wrote to the cache is written again with the same contents.
        """
        if self._budget.shrink(plan.num_tokens):
            return ()
        return (plan.requests[plan.num_decodes :] or plan.requests)[:1]

    def plan(self, now_ns: int) -> StepPlan:
        """The next step. Admits and preempts, and gives each sequence the blocks that it is about to fill."""
        draft = StepDraft(self._budget.tokens)
        prefilling, decoding = self._queues.count(RequestState.PREFILL), self._queues.count(RequestState.DECODING)
        for kind in self._mode.kinds(prefilling, decoding):
            if kind.decode:
                self._decode(draft, now_ns)
            if kind.prefill:
                for request in self._queues.in_state(RequestState.PREFILL):
                    self._prefill(request, draft, now_ns)
            if kind.admit and not draft.preemptions:
                self._admit(kind, draft, now_ns)
            if not draft.is_empty:
                break
        return draft.finished(self._kv.take_copies())

    def _decode(self, draft: StepDraft, now_ns: int) -> None:
        """One token of each decoding request; of fewer where the budget has shrunk below their number."""
        capacity = self._admission.capacity_blocks
        decoding, extend = RequestState.DECODING, self._kv.extend
        draft.decode, full = self._kv.fill(self._queues.in_state(decoding)[: draft.budget], now_ns, capacity)
        for request in full:
            while request.state is decoding:
                end = request.num_computed_tokens + 1
                blocks = extend(request.request_id, end, now_ns, capacity)
                if blocks is None and self.num_active == 1:
                    # One alone may go on, also where the cap was lowered below it.
                    blocks = extend(request.request_id, end, now_ns)
                if blocks is not None:
                    draft.decode[request] = blocks
                    break
                draft.withdraw(self._give_way(draft, now_ns))
        draft.budget -= len(draft.decode)

    def _give_way(self, draft: StepDraft, now_ns: int) -> Request:
        """Preempts one active request, which may be the very one that needs the block."""
        victim = choose_victim(
            self._queues.active(), self._victim_policy, self._places.order_of, self._config.preemption.max_preemptions
        )
        self._sharing.closed(victim)
        add_usage(victim, self._preempt(victim, self._kv, now_ns))
        self._queues.give_way(victim)
        draft.preemptions += 1
        return victim

    def _admit(self, kind: StepKind, draft: StepDraft, now_ns: int) -> None:
        max_active = self._admission.caps.max_active_requests
        nothing_free = self._kv.unpromised_blocks + self._kv.sessions.num_blocks <= 0
        if nothing_free or not self._waiting or self.num_active >= max_active:
            return
        active = self._queues.active()
        running = self._admission.estimator.crowd(active)
        places = self._places.left(active, max_active)
        prefilling = self._limits.nobody()
        for request in self._queues.in_state(RequestState.PREFILL):
            prefilling.add(request, self._waiting.class_of(request))
        held_back: set[str] = set()
        misfits = 0
        for request in self._waiting.candidates(now_ns):
            if running.size >= max_active or (draft.budget <= 0 and not kind.fills_batch) or misfits >= MOST_MISFITS:
                return
            slo_class = self._waiting.class_of(request)
            if not places.has_one_for(slo_class):
                # Who may go in takes a place that is kept for its class, and so nothing from this one, however aged.
                held_back.add(request.request_id)
                continue
            fitting = None
            if kind.fills_batch or prefilling.leaves_room_for(request, slo_class):
                start = self._sharing.start_of(request)
                if self._sharing.is_on_its_way(request, start):
                    held_back.add(request.request_id)
                    continue
                fitting = self._admission.start_now(request, start, running)
                misfits += fitting is None
            if fitting is not None:
                self._let_in(request, fitting, draft, now_ns)
                running.add(request)
                places.take(slo_class)
                prefilling.add(request, slo_class)
                if self._waiting.note_admission(request, held_back):
                    return
            elif self._waiting.has_aged(request):
                return

    def _let_in(self, request: Request, start: Start, draft: StepDraft, now_ns: int) -> None:
        self._admission.admit(request, start, now_ns)
        request.admission_number = next(self._admission_numbers)
        draft.admitted.append(request)
        self._queues.move(request, RequestState.PREFILL)
        self._prefill(request, draft, now_ns)

    def _prefill(self, request: Request, draft: StepDraft, now_ns: int) -> None:
        """Schedules as much of the prompt as the budget and the limits allow."""
        chunk = self._limits.chunk(request, draft.budget, first=not draft.prefill)
        if chunk > 0:
            end = request.num_computed_tokens + chunk
            draft.add_prefill(request, chunk, self._kv.grow(request.request_id, end, now_ns))


def add_usage(request: Request, usage: KVUsage) -> None:
    """Adds a stay in the cache to what the request has cost: the peak is the greatest, block-seconds add up."""
    request.kv_peak_blocks = max(request.kv_peak_blocks, usage.peak_blocks)
    request.kv_block_seconds += usage.block_seconds
