"""Who waits behind whom: places kept for others, ageing, requests that find no memory, and what waiting costs."""

from __future__ import annotations

from tests.engine.cached_engine import CachedEngine
from tests.engine.simulation import prompt

from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import AbortCause, Request, RequestState
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.admission import Admission
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings
from quantgate_engine.scheduler.scheduler import MOST_MISFITS
from quantgate_engine.scheduler.slo_class import SLOClass
from quantgate_engine.timeouts import Deadlines, TimeoutSettings

BATCH_TERMS = RequestTerms(slo_class="batch")
RESERVING = BatchingSettings(slo_classes=(SLOClass("chat", reserved_active=1), SLOClass("batch")))


def test_an_aged_request_without_a_place_does_not_keep_others_from_places_of_their_own() -> None:
    engine = CachedEngine(batching=RESERVING, max_active_requests=2, max_overtakes=1)
    engine.add("runs", prompt(4), max_tokens=60, terms=BATCH_TERMS)
    engine.step()
    old = engine.add("old", prompt(4, 10), max_tokens=2, terms=BATCH_TERMS)
    for i in range(5):
        engine.add(f"chat-{i}", prompt(4, 20 + i), max_tokens=2)
    engine.step(15)
    # One of two places is kept for chat: all of them went through it, though the old one could be passed only once.
    assert {f"chat-{i}" for i in range(5)} <= engine.ended.keys()
    assert old.state is RequestState.WAITING
    assert old.times_overtaken <= 1
    assert engine.run()["old"].state is RequestState.FINISHED


def test_a_step_looks_at_no_more_than_a_few_that_find_no_memory() -> None:
    engine = CachedEngine(num_blocks=16, max_active_requests=4, max_overtakes=50)
    engine.add("runs", prompt(20), max_tokens=21)
    engine.step()
    looked_at = 0
    start_now = engine.core._admission.start_now

    def counting(*arguments: object) -> object:
        nonlocal looked_at
        looked_at += 1
        return start_now(*arguments)

    engine.core._admission.start_now = counting
    for i in range(40):
        engine.add(f"r{i}", prompt(24, i), max_tokens=10)
    engine.step()
    assert looked_at == MOST_MISFITS
    assert len(engine.run()) == 41


def test_an_arrival_does_not_count_those_that_wait_where_waiting_is_allowed() -> None:
    def nobody_asks() -> list[Request]:
        raise AssertionError("thousands may wait")

    admission: Admission = CachedEngine().core._admission
    request = Request("a", prompt(4), SamplingParams(), arrived_ns=0)
    assert admission.turned_away(request, nobody_asks, nobody_asks) is None


def test_requests_that_have_ended_leave_the_book_of_deadlines() -> None:
    deadlines = Deadlines(TimeoutSettings(request_s=600.0))
    stays = Request("stays", prompt(4), SamplingParams(), arrived_ns=0, rank=10_000)
    deadlines.watch(stays)
    for rank in range(5_000):
        request = Request("r", prompt(4), SamplingParams(), arrived_ns=rank, rank=rank)
        deadlines.watch(request)
        deadlines.forget(request)
    assert len(deadlines._due) < 200
    assert deadlines.passed(601 * 10**9) == [stays]
    assert deadlines.passed(601 * 10**9) == []


def test_sessions_give_way_when_the_cap_on_kv_tokens_is_lowered_and_later_hold_no_more_than_it() -> None:
    cache = CacheSettings(prefix_sharing=True, session_seconds=1.0)
    engine = CachedEngine(cache=cache, admission=AdmissionSettings(estimator="optimistic"))
    for name in "abc":
        engine.add(name, prompt(16, ord(name)), max_tokens=2, terms=RequestTerms(session_id=name))
        engine.run()
    assert engine.core.held_blocks == 12
    engine.core.set_caps(Caps(max_context_tokens=512, max_active_requests=4, max_kv_tokens=36))
    engine.step()
    assert {holding.holder for holding in engine.core.kv_holdings()} == {"b", "c"}
    engine.core.take_steps()
    engine.add("grows", prompt(8, 700), max_tokens=25)
    engine.run()
    assert max(record.kv_allocated_blocks for record in engine.core.take_steps()) <= 9


def test_a_shutdown_gives_up_what_was_swapped_out_and_a_drain_brings_it_to_its_end() -> None:
    def with_one_swapped_out() -> CachedEngine:
        swap = PreemptionSettings(mode="swap", host_blocks=16)
        engine = CachedEngine(num_blocks=4, admission=AdmissionSettings(estimator="optimistic"), preemption=swap)
        engine.add("old", prompt(7), max_tokens=6)
        engine.add("new", prompt(7, 50), max_tokens=6)
        engine.step(3)
        assert [holding.kind for holding in engine.core.kv_holdings()] == ["request", "swapped"]
        return engine

    given_up = with_one_swapped_out()
    given_up.core.shut_down(drain=False)
    assert set(given_up.step()) == {"old", "new"}
    assert given_up.core.aborts_by_cause == {AbortCause.SHUTDOWN: 2}
    assert given_up.core.kv_holdings() == []

    drained = with_one_swapped_out()
    drained.core.shut_down(drain=True)
    assert {request.state for request in drained.run().values()} == {RequestState.FINISHED}
    assert drained.core.kv_holdings() == []
