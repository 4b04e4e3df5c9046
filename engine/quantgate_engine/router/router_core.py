"""Several engines that step as one: requests are routed to pools, and the pools of a device take turns."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from quantgate_engine.engine_totals import EngineTotals
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.block_pool import BlockPoolError
from quantgate_engine.malformed_request import malformation
from quantgate_engine.request import AbortCause, Request, RequestState
from quantgate_engine.request_terms import DEFAULT_TERMS, RequestTerms
from quantgate_engine.router.device import Device
from quantgate_engine.router.placement import Placement
from quantgate_engine.router.pool import Arrival, Pool
from quantgate_engine.router.pool_group import PoolGroup
from quantgate_engine.router.routing import Routing
from quantgate_engine.router.settings import RouterSettings
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.step_plan import StepPlan
from quantgate_engine.step_record import StepRecord
from quantgate_engine.step_result import StepResult, StepWork, make_record

# As an engine's own log: who never takes the records loses the oldest, never the memory.
_STEP_LOG_LIMIT = 250_000

_NOTHING = StepPlan()


class RouterCore(PoolGroup):
    """Implements `SteppedEngine` over pools that share one device, so that whatever drives an engine drives them too.

    A step is one step of one pool: while it lasts, the other pools on the device wait. Records of steps carry the name
    of their pool and are numbered over all of them; a step without a pool tells of requests that no pool took.

    A request is in the router's book before its pool knows of it. To whoever adds, aborts, finishes or reopens on
    another thread it comes in at once: they wait for `_arrivals`. Those that step do not.
    """

    def __init__(self, pools: Sequence[Pool], settings: RouterSettings | None = None) -> None:
        """Raises ConfigurationError where the pools do not go together."""
        settings = settings or RouterSettings()
        super().__init__(pools)
        self.totals = EngineTotals()
        self._placement = Placement(pools)
        self._routing = Routing(pools, self.slo_classes, settings, self._placement)
        self._device = Device(pools, settings)
        self._refused: dict[str, Request] = {}
        self._arrivals = threading.Lock()
        self._steps: deque[StepRecord] = deque(maxlen=_STEP_LOG_LIMIT)

    @property
    def has_work(self) -> bool:
        """Whether `step` has anything to do."""
        return bool(self._refused) or self._device.has_work

    @property
    def has_refused(self) -> bool:
        """Whether requests wait for a step to tell that no pool took them."""
        return bool(self._refused)

    def pool_of(self, request_id: str) -> str | None:
        """The name of the pool that a live request is in."""
        pool = self._placement.pool_of(request_id)
        return pool.name if pool is not None else None

    def add_request(
        self,
        request_id: str,
        prompt_token_ids: tuple[int, ...],
        params: SamplingParams,
        terms: RequestTerms = DEFAULT_TERMS,
    ) -> Request:
        """Gives a request to its pool; one that no pool takes ends as rejected in the next step.

        Raises ConfigurationError where something is of the wrong type, a live request has the same id, or no pool has
        its SLO class. Nothing is known of the request then.
        """
        wrong = malformation(request_id, prompt_token_ids, params, terms)
        if wrong is not None:
            raise ConfigurationError(wrong)
        with self._arrivals:
            if request_id in self._placement or request_id in self._refused:
                raise ConfigurationError(
                    f"Request id {request_id!r} belongs to a request that has not ended; choose another id."
                )
            arrival = self._arrival(request_id, prompt_token_ids, params, terms)
            pool = self._routing.pool_for(arrival)
            return self._refuse(arrival) if pool is None else self._enter(arrival, pool)

    def abort(self, request_id: str, cause: AbortCause) -> None:
        """Gives a request up, in whatever state it is; does nothing where it has ended or never was."""
        with self._arrivals:
            pool = self._placement.pool_of(request_id)
            if pool is not None:
                pool.core.abort(request_id, cause)

    def abort_all(self, cause: AbortCause) -> None:
        with self._arrivals:
            super().abort_all(cause)

    def finish(self, request_id: str) -> None:
        """See `EngineCore.finish`."""
        with self._arrivals:
            pool = self._placement.pool_of(request_id)
            if pool is not None:
                pool.core.finish(request_id)

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
        arrival = self._arrival(request_id, prompt_token_ids, params, terms)
        pool = self._routing.pool_for(arrival)
        return pool.core.refusal(*arrival) if pool is not None else self._routing.refusal(arrival)

    def output_room(
        self, prompt_token_ids: tuple[int, ...], params: SamplingParams, terms: RequestTerms = DEFAULT_TERMS
    ) -> int:
        """The most output tokens, up to `params.max_tokens`, with which some pool takes and runs such a request."""
        return self._routing.output_room(self._arrival("", prompt_token_ids, params, terms))

    def reopen(self) -> None:
        """See `EngineCore.reopen`."""
        with self._arrivals:
            super().reopen()
            for request in self._refused.values():
                request.transition(RequestState.REJECTED)
            self._refused.clear()
            self._placement.clear()

    def take_steps(self) -> list[StepRecord]:
        """The records of the steps since the last call, in order."""
        return [self._steps.popleft() for _ in range(len(self._steps))]

    def step(self) -> StepResult:
        """Runs one step of the pool whose turn it is."""
        return self.step_on(self._device)

    def step_on(self, device: Device) -> StepResult:
        """Runs one step of the pool whose turn it is on `device`, which has some of the pools to itself."""
        result = StepResult()
        # The pools whose turn it is not let go in time too: a dead session's blocks count for where requests go.
        self.expire_sessions()
        self._end_refused(result)
        if device.has_work:
            try:
                pool, stepped = device.step()
            except BaseException:
                # The pool that broke has given up its requests, and told nobody.
                with self._arrivals:
                    self._placement.keep_only_live()
                raise
            result.tokens.extend(stepped.tokens)
            result.ended.extend(stepped.ended)
            for request in stepped.ended:
                self._placement.leave(request.request_id, request.terms)
            for record in pool.core.take_steps():
                self._log(record, pool.name)
        return result

    def check_integrity(self) -> None:
        """Raises BlockPoolError unless the books of every pool add up, and an idle router knows of no request."""
        for pool in self.pools:
            pool.core.check_integrity()
        if not self.has_work and not self._placement.is_empty:
            raise BlockPoolError("the pools are idle, and the router's book is not empty")

    def _arrival(
        self, request_id: str, prompt_token_ids: tuple[int, ...], params: SamplingParams, terms: RequestTerms
    ) -> Arrival:
        return Arrival(request_id, prompt_token_ids, params, self._routing.with_class(request_id, terms))

    def _enter(self, arrival: Arrival, pool: Pool) -> Request:
        # Before the pool knows it: from then on the thread that steps may bring it to its end at any time.
        self._placement.enter(arrival.request_id, pool, arrival.terms)
        try:
            return pool.core.add_request(*arrival)
        except BaseException:
            # Also an interrupt, most of all while a long prompt is hashed.
            self._placement.leave(arrival.request_id, arrival.terms)
            raise

    def _refuse(self, arrival: Arrival) -> Request:
        request = Request(
            arrival.request_id,
            arrival.prompt_token_ids,
            arrival.params,
            self.pools[0].core.clock.now_ns(),
            arrival.terms,
            error=self._routing.refusal(arrival),
        )
        self._refused[request.request_id] = request
        return request

    def _end_refused(self, result: StepResult) -> None:
        for request_id in tuple(self._refused):
            request = self._refused.pop(request_id)
            request.transition(RequestState.REJECTED)
            result.ended.append(request)
        if result.ended:
            now_ns = self.pools[0].core.clock.now_ns()
            work = StepWork(plan=_NOTHING, computed=_NOTHING)
            self._log(make_record(0, now_ns, 0, self.load, work, result.ended), None)

    def _log(self, record: StepRecord, pool: str | None) -> None:
        numbered = record._replace(step_index=self.totals.steps, pool=pool)
        self.totals.add(numbered)
        self._steps.append(numbered)
