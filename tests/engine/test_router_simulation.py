"""Random work for pools, and what must hold whatever the work was."""

from __future__ import annotations

import random

import pytest
from tests.engine.pools import Pools, bulk, engine, fast
from tests.engine.simulation import prompt

from quantgate_engine.executor.simulated import simulated_token
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import AbortCause, Request, RequestState
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.router.pool import Arrival
from quantgate_engine.router.settings import (
    ChoiceName,
    PoolRule,
    RouterSettings,
    SpillSettings,
    TokenRange,
    TurnName,
)
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.settings import AdmissionSettings

VOCABULARY = 1 << 18
"""Of a simulated executor."""

OTHERS = PoolRule(slo_classes=("batch",), prompt_tokens=TokenRange(most=16))
NOT_THE_LONGEST = PoolRule(prompt_tokens=TokenRange(most=38))
FINAL = {RequestState.FINISHED, RequestState.ABORTED, RequestState.REJECTED}
KEEPING = CacheSettings(prefix_sharing=True, session_seconds=0.0001, session_blocks=16)
PRESSED = {"cache": KEEPING, "admission": AdmissionSettings(estimator="optimistic"), "num_kv_blocks": 18}


class RandomTraffic:
    """Arrivals, forks, turns of sessions, aborts and pauses for three pools that spill and are short of blocks."""

    def __init__(self, seed: int, settings: RouterSettings, *, shared_device: bool) -> None:
        self._random = random.Random(seed)
        spill = SpillSettings(to="bulk", waiting_requests=3, held_share=0.8)
        self.pools = Pools(
            fast(engine=engine(**PRESSED), spill=spill),
            fast("other", engine=engine(**PRESSED), rule=OTHERS, share=2.0),
            bulk(engine=engine(**PRESSED | {"max_active_requests": 4, "max_step_tokens": 32}), rule=NOT_THE_LONGEST),
            settings=settings,
            shared_device=shared_device,
        )
        self.requests: list[Request] = []
        self.placed: list[str | None] = []

    def run(self, operations: int) -> None:
        for number in range(operations):
            chance = self._random.random()
            if chance < 0.6:
                self._add(f"r{number}")
            elif chance < 0.7 and self.requests:
                victim = self._random.choice(self.requests[-10:])
                self.pools.core.abort(victim.request_id, self._random.choice(list(AbortCause)))
            elif chance < 0.75 and self.requests:
                self.pools.core.finish(self._random.choice(self.requests[-10:]).request_id)
            else:
                self.pools.run_for(self._random.choice((1, 500, 3000, 20_000)))
        self.pools.run()

    def _add(self, name: str) -> None:
        pick = self._random
        terms = RequestTerms(
            slo_class=pick.choice((None, "interactive", "batch")),
            timeout_s=pick.choice((None, None, 0.00002)),
            session_id=pick.choice((None, f"s{pick.randrange(6)}")),
            fork_of=pick.choice(self.requests[-5:]).request_id if self.requests and pick.random() < 0.2 else None,
        )
        arrival = Arrival(name, prompt(pick.randint(1, 40)), SamplingParams(max_tokens=pick.randint(1, 30)), terms)
        home = self._home_of(arrival)
        self.requests.append(self.pools.core.add_request(*arrival))
        went = self.pools.core.pool_of(name)
        self.placed.append(went)
        assert home is None or went == home

    def _home_of(self, arrival: Arrival) -> str | None:
        """Where the request must go, whatever the rules say: to its live parent, else to its session's live turn."""
        terms = arrival.terms
        parent = self.pools.core.pool_of(terms.fork_of) if terms.fork_of is not None else None
        if parent is not None or terms.session_id is None:
            return parent
        turns = [request for request in self.requests if request.terms.session_id == terms.session_id]
        return self.pools.core.pool_of(turns[-1].request_id) if turns else None


SETTINGS = [
    pytest.param(choice, turns, shared, id=f"{choice}, {turns}, {'one device' if shared else 'a device each'}")
    for choice, turns, shared in (
        ("first-match", "time-share", True),
        ("least-loaded", "priority", True),
        ("least-loaded", "time-share", False),
    )
]


@pytest.mark.parametrize(("choice", "turns", "shared"), SETTINGS)
@pytest.mark.parametrize("seed", [1, 2])
def test_nobody_is_lost_and_everyone_ends_once(choice: ChoiceName, turns: TurnName, shared: bool, seed: int) -> None:
    traffic = RandomTraffic(seed, RouterSettings(choice=choice, turns=turns), shared_device=shared)
    traffic.run(1000)
    core, ended = traffic.pools.core, traffic.pools.ended
    assert sorted(request.request_id for request in ended) == sorted(r.request_id for r in traffic.requests)
    assert {request.state for request in ended} <= FINAL
    assert not core.has_work

    by_state = {state: [request for request in ended if request.state is state] for state in FINAL}
    for request in by_state[RequestState.FINISHED]:
        assert request.output_token_ids == _expected(request)
    for request in by_state[RequestState.ABORTED]:
        assert request.output_token_ids == _expected(request)
    assert core.totals.request_abort_count == len(by_state[RequestState.ABORTED]) == sum(core.aborts_by_cause.values())
    assert core.aborts_by_cause[AbortCause.TIMEOUT] > 0
    assert core.totals.rejected_count == len(by_state[RequestState.REJECTED]) > 0
    assert core.totals.preemption_count > 0
    assert core.totals.cached_prompt_tokens > 0

    records = core.take_steps()
    assert [record.step_index for record in records] == list(range(core.totals.steps))
    for pool in core.pools:
        own = [record for record in records if record.pool == pool.name]
        assert own
        assert sum(record.prefill_tokens for record in own) == pool.core.totals.prefill_tokens
        assert pool.core.totals.steps == len(own)


def _expected(request: Request) -> tuple[int, ...]:
    tokens = list(request.prompt_token_ids)
    for _ in request.output:
        tokens.append(simulated_token(tokens[-1], len(tokens), VOCABULARY))
    return tuple(tokens[len(request.prompt_token_ids) :])


def test_the_same_traffic_goes_the_same_way() -> None:
    first, second = (RandomTraffic(3, RouterSettings(), shared_device=True) for _ in range(2))
    first.run(600)
    second.run(600)
    assert first.placed == second.placed
    assert [_end(request) for request in first.pools.ended] == [_end(request) for request in second.pools.ended]
    assert first.pools.core.take_steps() == second.pools.core.take_steps()
    assert set(first.placed) == {"fast", "other", "bulk", None}


def _end(request: Request) -> tuple[object, ...]:
    return request.request_id, request.state, request.output_token_ids, request.finished_ns
