"""Random work for an engine, and what must hold whatever the work was."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from tests.engine.cached_engine import CachedEngine, assert_right
from tests.engine.simulation import prompt

from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import AbortCause, Request, RequestState
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionModeName, PreemptionSettings, VictimPolicyName
from quantgate_engine.step_result import StepResult

FINAL = {RequestState.FINISHED, RequestState.ABORTED, RequestState.REJECTED}
LIVE = ("waiting", "prefill", "decoding")


def engine_under_pressure(mode: PreemptionModeName, victim: VictimPolicyName) -> CachedEngine:
    """An engine whose pool holds about a quarter of what its requests would like to have."""
    return CachedEngine(
        num_blocks=14,
        max_overtakes=2,
        batching=BatchingSettings(length_buckets=(8, 16)),
        admission=AdmissionSettings(estimator="optimistic"),
        cache=CacheSettings(prefix_sharing=True, session_seconds=100e-6, session_blocks=10),
        preemption=PreemptionSettings(mode=mode, victim=victim, host_blocks=10),
    )


class RandomOperations:
    """Operations on one engine; every choice is drawn from `seed`.

    Most prompts start alike, so that prefixes, forks and sessions meet. Few live requests at a time keep an operation
    at about 100 microseconds.
    """

    def __init__(self, engine: CachedEngine, seed: int, max_live: int = 12) -> None:
        self.engine = engine
        self.live: dict[str, Request] = {}
        self.num_submitted = self.num_ended = self.num_preempted = 0
        self.aborted_in: set[tuple[str, AbortCause]] = set()
        self._ended_by_cause: dict[AbortCause, int] = {}
        self._answers: dict[str, tuple[int, ...]] = {}
        self._random = random.Random(seed)
        self._max_live = max_live
        self._recomputed = self._rejected = 0
        weights: dict[Callable[[], object], int] = {
            self.submit: 8, self.fork: 2, self.next_turn: 2, self.step: 20, self.let_time_pass: 1,
            self.abort: 2, self.abort_in_a_step: 2, self.finish: 1, self.fail: 1, self.run_short_of_memory: 1,
            self.change_caps: 1,
        }  # fmt: skip
        self._operations = list(weights)
        self._weights = list(itertools.accumulate(weights.values()))

    def run(self, count: int) -> None:
        for operation in self._random.choices(self._operations, cum_weights=self._weights, k=count):
            operation()

    def drain(self) -> None:
        """Whatever the operations left, the engine comes to its end, and its sums are those of its requests."""
        for _ in range(20_000):
            if not self.engine.core.has_work:
                break
            self.step()
        core = self.engine.core
        assert not core.has_work
        assert not self.live
        assert core.load.active_requests == core.load.waiting_requests == 0
        assert {holding.kind for holding in core.kv_holdings()} <= {"session"}
        assert self.num_ended == self.num_submitted
        assert core.aborts_by_cause == self._ended_by_cause
        assert core.totals.request_abort_count == sum(self._ended_by_cause.values())
        assert core.totals.rejected_count == self._rejected
        assert core.totals.recomputed_tokens == self._recomputed
        assert core.totals.preemption_count == self.num_preempted

    def submit(self) -> None:
        family = self._random.randrange(3) * 100
        self._add(prompt(self._random.randrange(0, 40), family), self._terms())

    def fork(self) -> None:
        if self.live:
            parent = self._random.choice(list(self.live.values()))
            tokens = parent.prompt_token_ids + parent.output_token_ids
            tokens = tokens[: self._random.randrange(1, len(tokens) + 1)] if tokens else (1,)
            self._add(tokens, RequestTerms(fork_of=parent.request_id))

    def next_turn(self) -> None:
        """Goes on with a session from its last answer."""
        session = f"s{self._random.randrange(4)}"
        before = self._answers.get(session, ())[-60:]
        self._add(before + prompt(self._random.randrange(1, 9), 700), RequestTerms(session_id=session))

    def abort(self) -> None:
        if self.live:
            request = self._any()
            self._abort(request)
            self._abort(request)
            self._step_and_expect(request.request_id)

    def abort_in_a_step(self) -> None:
        if self.live:
            request = self._any()
            self.engine.executor.hook = lambda: self._abort(request)
            steps = len(self.engine.executor.steps)
            self.step()
            self.engine.executor.hook = None
            if len(self.engine.executor.steps) > steps:
                assert request.request_id not in self.live

    def finish(self) -> None:
        if self.live:
            request = self._any()
            had_output = bool(request.output)
            self.engine.core.finish(request.request_id)
            if had_output:
                self._step_and_expect(request.request_id)

    def change_caps(self) -> None:
        config = self.engine.config
        self.engine.core.set_caps(
            Caps(
                max_context_tokens=self._random.randrange(20, 100),
                max_active_requests=self._random.choice([1, config.max_active_requests, config.max_active_requests]),
                max_kv_tokens=self._random.choice([None, None, 40, 80]),
            )
        )

    def fail(self) -> None:
        def planted() -> None:
            raise RuntimeError("planted")

        self.engine.executor.hook = planted
        self.step()
        self.engine.executor.hook = None

    def run_short_of_memory(self) -> None:
        """Only a step of a single token can fail by that."""

        def planted() -> None:
            raise MemoryError("planted")

        self.engine.executor.hook = planted
        ended = self.step().ended
        self.engine.executor.hook = None
        assert sum(request.error == "MemoryError: planted" for request in ended) <= 1

    def let_time_pass(self) -> None:
        self.engine.clock.advance_ns(self._random.randrange(20_000))

    def step(self) -> StepResult:
        """One step, after which everything must add up."""
        engine = self.engine
        engine.executor.steps.clear()
        engine.executor.copies.clear()
        result = engine.core.step()
        engine.core.check_integrity()
        for request in result.ended:
            self._see_end(request)
        for request in self.live.values():
            assert request.state not in FINAL
            assert request.times_overtaken <= engine.config.max_overtakes
        waiting = sum(request.state is RequestState.WAITING for request in self.live.values())
        assert (engine.core.load.waiting_requests, engine.core.load.active_requests) == (
            waiting,
            len(self.live) - waiting,
        )
        for sequences in engine.executor.steps:
            assert_nobody_writes_what_another_reads(sequences, engine.config.block_size)
        return result

    def _see_end(self, request: Request) -> None:
        assert request.state in FINAL
        assert self.live.pop(request.request_id) is request
        self.num_ended += 1
        self._recomputed += request.recomputed_tokens
        self.num_preempted += request.preemptions
        if request.state is RequestState.REJECTED:
            assert request.error
            self._rejected += 1
        elif request.state is RequestState.ABORTED:
            assert request.abort_cause is not None
            self._ended_by_cause[request.abort_cause] = self._ended_by_cause.get(request.abort_cause, 0) + 1
        elif request.terms.session_id is not None:
            self._answers[request.terms.session_id] = request.prompt_token_ids + request.output_token_ids
        if request.output:
            assert_right(request)

    def _step_and_expect(self, request_id: str) -> None:
        self.step()
        assert request_id not in self.live

    def _abort(self, request: Request) -> None:
        cause = self._random.choice(list(AbortCause))
        if request.request_id in self.live:
            self.aborted_in.add((request.state.value, cause))
        self.engine.core.abort(request.request_id, cause)

    def _any(self) -> Request:
        return self._random.choice(list(self.live.values()))

    def _terms(self) -> RequestTerms:
        return RequestTerms(
            slo_class=self._random.choice([None, "interactive", "batch"]),
            timeout_s=self._random.choice([None, None, None, 30e-6]),
            turn_starts=self._random.choice([(), (2, 9, 15)]),
            cache_salt=self._random.choice(["", "", "other"]),
        )

    def _add(self, tokens: tuple[int, ...], terms: RequestTerms) -> None:
        if len(self.live) >= self._max_live:
            self.step()
            return
        name = f"r{self.num_submitted}"
        max_tokens = self._random.randrange(1, 24)
        forced = tokens[:max_tokens] if self._random.random() < 0.05 and len(tokens) >= max_tokens else ()
        params = SamplingParams(max_tokens=max_tokens, seed=self._random.randrange(3), forced_token_ids=forced)
        self.live[name] = self.engine.core.add_request(name, tokens, params, terms)
        self.num_submitted += 1


def assert_nobody_writes_what_another_reads(sequences: tuple[ScheduledSequence, ...], block_size: int) -> None:
    """A block that is written in a step lies in the table of its one writer alone."""
    in_tables: dict[int, int] = {}
    for sequence in sequences:
        for block in sequence.block_table:
            in_tables[block] = in_tables.get(block, 0) + 1
    for sequence in sequences:
        first = sequence.start_position // block_size
        assert all(in_tables[block] == 1 for block in sequence.block_table[first:])
