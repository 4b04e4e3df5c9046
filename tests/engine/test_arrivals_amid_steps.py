"""Requests that come in, and are given up, from other threads than the one that steps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.pools import Pools, bulk, fast
from tests.engine.simulation import Simulation, prompt

from quantgate_engine.engine import EngineCore
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.request import AbortCause, Request, RequestState
from quantgate_engine.request_terms import DEFAULT_TERMS
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.caps import Caps

PARAMS = SamplingParams(max_tokens=5)
LIMIT_S = 20


class _Inbox(deque[Any]):
    """Calls `between` when the first note is left: a request is known by its id then, and on its way to the books."""

    def __init__(self, notes: deque[Any], between: Callable[[], None]) -> None:
        super().__init__(notes)
        self._between: Callable[[], None] | None = between

    def append(self, note: Any) -> None:
        between, self._between = self._between, None
        if between is not None:
            between()
        super().append(note)


def _added_amid(core: EngineCore, name: str, between: Callable[[], None]) -> Request:
    core._inbox = _Inbox(core._inbox, between)
    return core.add_request(name, prompt(6), PARAMS)


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (lambda core: core.abort("amid", AbortCause.DISCONNECT), AbortCause.DISCONNECT),
        (lambda core: core.abort_all(AbortCause.SHUTDOWN), AbortCause.SHUTDOWN),
    ],
    ids=["abort", "abort_all"],
)
def test_a_request_given_up_before_it_is_received_has_one_end_and_the_others_go_on(
    call: Callable[[EngineCore], None], cause: AbortCause
) -> None:
    simulation = Simulation()
    core, ended = simulation.core, list[Request]()

    def between() -> None:
        call(core)
        ended.extend(core.step().ended)

    request = _added_amid(core, "amid", between)
    assert (request.state, request.abort_cause, ended) == (RequestState.ABORTED, cause, [request])
    again = core.add_request("amid", prompt(6), PARAMS)
    beside = core.add_request("beside", prompt(6), PARAMS)
    assert simulation.run() == [again, beside]
    assert again.state is beside.state is RequestState.FINISHED
    assert core.aborts_by_cause == {cause: 1}


@pytest.mark.parametrize(
    ("call", "state"),
    [
        (lambda core: core.finish("amid"), RequestState.FINISHED),
        (lambda core: core.set_caps(Caps(max_context_tokens=8, max_active_requests=1)), RequestState.REJECTED),
        (lambda core: core.shut_down(drain=False), RequestState.REJECTED),
        (lambda core: core.shut_down(drain=True), RequestState.REJECTED),
    ],
    ids=["finish", "set_caps", "shut_down", "drain"],
)
def test_what_else_is_wanted_before_a_request_is_received_holds_for_it_or_leaves_it(
    call: Callable[[EngineCore], None], state: RequestState
) -> None:
    simulation = Simulation()
    beside = simulation.core.add_request("beside", prompt(2), PARAMS)

    def between() -> None:
        call(simulation.core)
        simulation.core.step()

    request = _added_amid(simulation.core, "amid", between)
    ended = simulation.run()
    assert ended.count(request) == 1
    assert request.state is state
    assert beside.state in (RequestState.FINISHED, RequestState.ABORTED)


def test_a_step_that_breaks_while_a_request_is_on_its_way_gives_it_one_end(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation()
    simulation.core.add_request("runs", prompt(4), PARAMS)

    def broken(*_: object) -> None:
        raise KeyError("x")

    def between() -> None:
        monkeypatch.setattr(simulation.core._computation, "count", broken)
        with pytest.raises(KeyError):
            simulation.core.step()

    request = _added_amid(simulation.core, "amid", between)
    assert (request.state, request.abort_cause) == (RequestState.ABORTED, AbortCause.ERROR)
    assert simulation.run() == []
    assert simulation.core.aborts_by_cause == {AbortCause.ERROR: 2}


def test_what_comes_in_while_the_books_are_opened_anew_runs_or_is_given_up_and_is_never_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = Simulation()
    core, open_books, later = simulation.core, simulation.core._open_books, list[Request]()
    left = core.add_request("left", prompt(4), PARAMS)
    core.step()

    def opened_meanwhile() -> None:
        later.append(core.add_request("before", prompt(4), PARAMS))
        open_books()
        later.append(core.add_request("after", prompt(4), PARAMS))
        core.shut_down(drain=True)

    monkeypatch.setattr(core, "_open_books", opened_meanwhile)
    core._begin_anew(AbortCause.ERROR)
    simulation.run()
    late = core.add_request("late", prompt(4), PARAMS)
    simulation.run()
    final = (RequestState.FINISHED, RequestState.ABORTED)
    assert left.state is RequestState.ABORTED
    assert [request.state in final for request in later] == [True, True]
    assert late.state is RequestState.REJECTED


@pytest.mark.parametrize(
    "end", [lambda core: core.abort("a", AbortCause.DISCONNECT), lambda core: core.finish("a")], ids=["abort", "finish"]
)
def test_who_takes_over_an_id_is_not_ended_by_what_was_wanted_of_the_one_before(
    end: Callable[[EngineCore], None],
) -> None:
    simulation = Simulation()
    simulation.core.add_request("a", prompt(4), PARAMS)
    simulation.run()
    end(simulation.core)
    again = simulation.core.add_request("a", prompt(4), PARAMS)
    assert simulation.run() == [again]
    assert (again.state, len(again.output)) == (RequestState.FINISHED, 5)
    assert simulation.core.aborts_by_cause == {}


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_a_step_that_an_interrupt_breaks_leaves_a_clean_engine(
    monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    simulation = Simulation()
    requests = [simulation.core.add_request(name, prompt(8), PARAMS) for name in "ab"]

    def interrupted(*_: object) -> None:
        raise interrupt

    monkeypatch.setattr(simulation.core._computation, "count", interrupted)
    with pytest.raises(interrupt):
        simulation.core.step()
    assert {request.state for request in requests} == {RequestState.ABORTED}
    simulation.core.check_integrity()
    again = simulation.core.add_request("a", prompt(8), PARAMS)
    assert simulation.run() == [again]


def _meanwhile(other: threading.Thread) -> None:
    """Starts another thread, and gives it the time for what it wants, where nothing holds it up."""
    other.start()
    other.join(0.05)


def test_of_two_threads_that_bring_the_same_id_to_a_router_one_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = Pools(fast(), bulk())
    core, pool_for, refusals = pools.core, pools.core._routing.pool_for, list[ConfigurationError]()
    other = threading.Thread(target=lambda: add(40))

    def add(length: int) -> None:
        try:
            core.add_request("a", prompt(length), PARAMS, DEFAULT_TERMS)
        except ConfigurationError as refusal:
            refusals.append(refusal)

    def slow(arrival: Any) -> Any:
        if threading.current_thread() is not other:
            _meanwhile(other)
        return pool_for(arrival)

    monkeypatch.setattr(core._routing, "pool_for", slow)
    add(4)
    other.join(LIMIT_S)
    pools.run()
    assert [str(refusal) for refusal in refusals] == [
        "Request id 'a' belongs to a request that has not ended; choose another id."
    ]
    assert [request.state for request in pools.ended] == [RequestState.FINISHED]


def test_an_abort_that_comes_while_a_router_hands_a_request_on_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = Pools(bulk())
    [pool] = pools.core.pools
    add_request = pool.core.add_request
    other = threading.Thread(target=lambda: pools.core.abort("a", AbortCause.CANCELLED))

    def slow(*arrival: Any) -> Request:
        _meanwhile(other)
        return add_request(*arrival)

    monkeypatch.setattr(pool.core, "add_request", slow)
    pools.add("a")
    other.join(LIMIT_S)
    pools.run()
    assert [request.abort_cause for request in pools.ended] == [AbortCause.CANCELLED]
    assert pools.core.aborts_by_cause == {AbortCause.CANCELLED: 1}


def test_an_interrupt_while_a_pool_takes_a_request_leaves_nothing_of_it_in_the_routers_book(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pools = Pools(bulk())

    def interrupted(_request: Request) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pools.core.pools[0].core._sharing, "hash_prompt", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pools.add("a")
    assert pools.core.pool_of("a") is None
    assert pools.add("a") == "bulk"
    pools.run()
    assert [request.state for request in pools.ended] == [RequestState.FINISHED]


def test_a_pool_that_breaks_has_no_requests_in_the_routers_book_and_the_others_keep_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pools = Pools(fast(), bulk())
    assert pools.add("breaks") == "fast"
    assert pools.add("beside", 40) == "bulk"

    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(pools.core.pools[0].core._computation, "count", broken)
    with pytest.raises(KeyError):
        pools.core.step()
    assert pools.core.pool_of("breaks") is None
    assert pools.add("breaks") == "fast"
    ended: list[Request] = []
    while pools.core.has_work:
        ended.extend(pools.core.step().ended)
    assert {request.request_id for request in ended} == {"breaks", "beside"}
    assert {request.state for request in ended} == {RequestState.FINISHED}
    pools.core.check_integrity()


def test_a_refused_request_that_nobody_told_of_has_an_end_when_a_router_is_reopened() -> None:
    pools = Pools(fast())
    refused = pools.core.add_request("a", prompt(40), PARAMS, DEFAULT_TERMS)
    pools.core.reopen()
    assert refused.state is RequestState.REJECTED
    assert not pools.core.has_work
