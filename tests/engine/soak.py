"""A long run of the engine under traffic that never lets up, and what must hold all the way."""

from __future__ import annotations

import gc
import heapq
import itertools
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import cache

from tests.engine.soak_traffic import INPUT_MOST, OUTPUT_MOST, Arrival, SoakTraffic
from tests.engine.soak_windows import MemorySample, Window, window_of

from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.base import SampledToken, ScheduledSequence
from quantgate_engine.executor.simulated import SimulatedExecutor, StepCosts, simulated_token
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import AbortCause, Request, RequestState
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.step_result import StepResult

NUM_BLOCKS = 9_000
COSTS = StepCosts(base_ns=8_000_000, per_prefill_token_ns=1_000, per_decode_request_ns=60_000)
CONFIG = EngineConfig(
    max_active_requests=256,
    max_step_tokens=8_192,
    admission=AdmissionSettings(estimator="optimistic"),
    cache=CacheSettings(prefix_sharing=True, session_seconds=20.0, session_blocks=2_000),
)
WINDOWS = 40
STEPS_BETWEEN_CHECKS = 200


class LeavingExecutor(SimulatedExecutor):
    """Calls `in_the_step` while its step is not over yet."""

    in_the_step: Callable[[], None] | None = None

    def execute(self, sequences: tuple[ScheduledSequence, ...]) -> list[SampledToken | None]:
        tokens = super().execute(sequences)
        if self.in_the_step is not None:
            self.in_the_step()
        return tokens


class Soak:
    """`requests` requests from arrival to end; every breach of a rule is an AssertionError or a BlockPoolError."""

    def __init__(
        self, requests: int, seed: int, cycle_s: float = 60.0, resident_mb: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.clock = VirtualClock()
        self.executor = LeavingExecutor(
            self.clock, COSTS, num_blocks=NUM_BLOCKS, max_context_tokens=INPUT_MOST + OUTPUT_MOST
        )
        self.core = EngineCore(self.executor, CONFIG, self.clock)
        self.ends: Counter[str] = Counter()
        self.windows: list[Window] = []
        self.peak_waiting = 0
        self._traffic = SoakTraffic(capacity_per_s(seed), seed, cycle_s)
        self._arrivals = itertools.islice(self._traffic.arrivals(), requests)
        self._requests = requests
        self._resident_mb = resident_mb
        gc.collect()
        self._blocks_before = sys.getallocatedblocks()
        self._upcoming: Arrival | None = None
        self._live: dict[str, Request] = {}
        self._leaves_after: dict[str, int] = {}
        self._leaves_at: list[tuple[int, str]] = []
        self._window_ends_at = max(1, requests // WINDOWS)
        self._memory: list[MemorySample] = []
        self.executor.in_the_step = self._leave_in_time

    def run(self) -> None:
        """Serves everything, then lets the last sessions go; afterwards the engine must hold nothing."""
        for number in itertools.count(1):
            due = self._submit_due()
            if self.core.has_work:
                self._see(self.core.step())
            elif due is not None:
                self.clock.advance_ns(due - self.clock.now_ns())
            else:
                break
            if number % STEPS_BETWEEN_CHECKS == 0:
                self._check()
        assert not self._live
        assert sum(self.ends.values()) == self._requests
        self._check_totals()
        self.clock.advance_ns(round(CONFIG.cache.session_seconds * 1e9))
        self.core.add_request("last", (1, 2, 3), SamplingParams(max_tokens=1))
        while self.core.has_work:
            self.core.step()
        assert self.core.held_blocks == 0

    def blocks_left_behind(self) -> int:
        """Of Python's allocator, after the run, when the engine has dropped all that it keeps for requests to come."""
        self.core.forget()
        self.core.take_steps()
        self._memory.clear()
        gc.collect()
        return sys.getallocatedblocks() - self._blocks_before

    def _submit_due(self) -> int | None:
        """Submits what has arrived by now; when the next one does, None after the last."""
        while (arrival := self._next()) is not None and arrival.at_ns <= self.clock.now_ns():
            self._submit(arrival)
            self._upcoming = None
        return None if arrival is None else arrival.at_ns

    def _next(self) -> Arrival | None:
        if self._upcoming is None:
            self._upcoming = next(self._arrivals, None)
        return self._upcoming

    def _submit(self, arrival: Arrival) -> None:
        name = arrival.request_id
        assert name not in self._live
        self._live[name] = self.core.add_request(name, arrival.prompt, arrival.params, arrival.terms)
        if arrival.leaves_after_tokens is not None:
            self._leaves_after[name] = arrival.leaves_after_tokens
        if arrival.leaves_at_ns is not None:
            heapq.heappush(self._leaves_at, (arrival.leaves_at_ns, name))

    def _leave_in_time(self) -> None:
        while self._leaves_at and self._leaves_at[0][0] <= self.clock.now_ns():
            self.core.abort(heapq.heappop(self._leaves_at)[1], AbortCause.DISCONNECT)

    def _see(self, result: StepResult) -> None:
        for request, _ in result.tokens:
            leaves_after = self._leaves_after.get(request.request_id)
            if leaves_after is not None and len(request.output) >= leaves_after:
                self.core.abort(request.request_id, AbortCause.DISCONNECT)
        for request in result.ended:
            self._see_end(request)
        self.peak_waiting = max(self.peak_waiting, self.core.load.waiting_requests)

    def _see_end(self, request: Request) -> None:
        assert self._live.pop(request.request_id) is request
        self._leaves_after.pop(request.request_id, None)
        assert_right(request, self.executor.vocab_size)
        self.ends[end_of(request)] += 1
        self._traffic.note_end(request)
        ended = self.ends.total()
        if ended % max(1, self._requests // WINDOWS // 16) == 0:
            blocks = sys.getallocatedblocks() - self._blocks_before
            self._memory.append((blocks, tracemalloc.get_traced_memory()[0] / 1e6, self._resident_mb()))
        if ended >= self._window_ends_at:
            records, share = self.core.take_steps(), self._requests // WINDOWS
            self.windows.append(window_of(records, share, self._memory, NUM_BLOCKS, CONFIG.block_size))
            self._window_ends_at += self._requests // WINDOWS
            self._memory = []

    def _check(self) -> None:
        self.core.check_integrity()
        load = self.core.load
        assert load.active_requests + load.waiting_requests == len(self._live)

    def _check_totals(self) -> None:
        by_cause = {cause.value: count for cause, count in self.core.aborts_by_cause.items()}
        assert by_cause == {cause.value: self.ends[cause.value] for cause in AbortCause if self.ends[cause.value]}
        assert self.core.totals.request_abort_count == sum(by_cause.values())
        assert self.core.totals.rejected_count == self.ends["rejected"]


def end_of(request: Request) -> str:
    """The one final state of a request; of an aborted one the cause."""
    if request.state is RequestState.ABORTED:
        assert request.abort_cause is not None
        return request.abort_cause.value
    assert request.state in (RequestState.FINISHED, RequestState.REJECTED)
    return request.state.value


def assert_right(request: Request, vocab_size: int) -> None:
    """Every token follows from the one before it, and a finished request has all of them."""
    previous, position = request.prompt_token_ids[-1], len(request.prompt_token_ids)
    for token in request.output:
        assert token.token_id == simulated_token(previous, position, vocab_size, request.params.seed)
        previous, position = token.token_id, position + 1
    if request.state is RequestState.FINISHED:
        assert len(request.output) == request.params.max_tokens


@cache
def capacity_per_s(seed: int, requests: int = 1_500) -> float:
    """Requests per second of virtual time that the engine serves when all of them are there at once."""
    clock = VirtualClock()
    executor = SimulatedExecutor(clock, COSTS, num_blocks=NUM_BLOCKS, max_context_tokens=INPUT_MOST + OUTPUT_MOST)
    core = EngineCore(executor, CONFIG, clock)
    for arrival in itertools.islice(SoakTraffic(1e6, seed).arrivals(), requests):
        core.add_request(arrival.request_id, arrival.prompt, arrival.params)
    while core.has_work:
        core.step()
    return requests / (clock.now_ns() / 1e9)


def living_requests() -> int:
    """Request objects that the interpreter still has."""
    gc.collect()
    return sum(type(thing) is Request for thing in gc.get_objects())
