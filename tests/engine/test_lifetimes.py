"""What ends by time: requests, sessions, drains; and who holds blocks meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from tests.engine.async_engine import LIMIT_S
from tests.engine.cached_engine import CachedEngine
from tests.engine.pools import Pools, bulk, engine, fast
from tests.engine.simulation import prompt

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import AbortCause, RequestState
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.router.settings import SpillSettings
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.timeouts import TimeoutSettings


def _session(name: str) -> RequestTerms:
    return RequestTerms(session_id=name)


def _with_sessions(seconds: float = 1.0, blocks: int = 64, **settings: object) -> CachedEngine:
    cache = CacheSettings(prefix_sharing=True, session_seconds=seconds, session_blocks=blocks)
    return CachedEngine(cache=cache, **settings)


def test_a_request_is_given_up_when_its_time_is_over_in_whatever_state_it_is() -> None:
    engine = CachedEngine(max_active_requests=2, max_step_tokens=8, timeouts=TimeoutSettings(request_s=3e-6))
    engine.add("decoding", prompt(4), max_tokens=90)
    engine.add("prefill", prompt(90), max_tokens=1)
    engine.add("waiting", prompt(4), max_tokens=1)
    engine.add("patient", prompt(4), max_tokens=2, terms=RequestTerms(timeout_s=1.0))
    engine.run()
    timed_out = {name for name, request in engine.ended.items() if request.abort_cause is AbortCause.TIMEOUT}
    assert timed_out == {"decoding", "prefill", "waiting"}
    assert engine.core.aborts_by_cause == {AbortCause.TIMEOUT: 3}
    assert engine.ended["patient"].state is RequestState.FINISHED
    assert engine.core.held_blocks == 0


def test_a_timeout_gives_back_its_blocks_at_the_end_of_the_step_in_which_it_passes() -> None:
    engine = CachedEngine()
    engine.add("a", prompt(4), max_tokens=90, terms=RequestTerms(timeout_s=1e-6))
    assert engine.step() == ["a"]
    assert engine.core.held_blocks == 0


def test_an_id_that_is_used_again_is_not_given_up_for_its_predecessors_deadline() -> None:
    engine = CachedEngine()
    engine.add("a", prompt(4), max_tokens=1, terms=RequestTerms(timeout_s=5e-6))
    engine.run()
    engine.add("a", prompt(4), max_tokens=20)
    assert engine.run()["a"].state is RequestState.FINISHED


def test_a_session_holds_its_blocks_until_its_next_turn_takes_them_over() -> None:
    engine = _with_sessions()
    engine.add("turn-1", prompt(10), max_tokens=4, terms=_session("s"))
    answer = engine.run()["turn-1"].output_token_ids
    assert engine.core.held_blocks == 3
    [holding] = engine.core.kv_holdings()
    assert (holding.holder, holding.kind, holding.blocks) == ("s", "session", 3)
    assert engine.core.load.used_tokens == 12
    engine.add("turn-2", prompt(10) + answer + prompt(5, 400), max_tokens=4, terms=_session("s"))
    assert engine.run()["turn-2"].cached_prompt_tokens == 12
    assert engine.core.held_blocks == 5


def test_a_session_lets_go_when_its_time_is_over() -> None:
    engine = _with_sessions(seconds=1.0)
    engine.add("turn-1", prompt(12), max_tokens=2, terms=_session("s"))
    engine.run()
    engine.clock.advance_ns(10**9 - 1)
    engine.add("other", prompt(4, 500), max_tokens=1)
    engine.step()
    assert engine.core.held_blocks == 3
    engine.clock.advance_ns(1)
    engine.add("other", prompt(4, 500), max_tokens=1)
    engine.run()
    assert engine.core.held_blocks == 0


def test_an_idle_engine_says_when_a_session_is_to_let_go_and_lets_go_then() -> None:
    engine = _with_sessions(seconds=1.0)
    assert engine.core.expire_sessions() is None
    engine.add("turn-1", prompt(12), max_tokens=2, terms=_session("s"))
    engine.run()
    engine.clock.advance_ns(250_000_000)
    assert engine.core.expire_sessions() == 0.75
    assert engine.core.held_blocks == 3
    engine.clock.advance_ns(750_000_000)
    assert engine.core.expire_sessions() is None
    assert engine.core.held_blocks == 0


def test_the_step_thread_lets_go_of_sessions_though_nobody_asks_for_anything() -> None:
    engine = _with_sessions(seconds=0.01)

    async def scenario() -> None:
        streaming = AsyncLLM(engine.core)
        await streaming.start()
        params = SamplingParams(max_tokens=2)
        assert [chunk async for chunk in streaming.stream("turn-1", prompt(12), params, _session("s"))]
        assert streaming.load.allocated_blocks == 3
        engine.clock.advance_ns(10_000_000)
        while streaming.load.allocated_blocks:
            await asyncio.sleep(0.001)
        await streaming.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def test_a_dead_session_of_an_idle_pool_sends_nobody_to_another_pool() -> None:
    cache = CacheSettings(prefix_sharing=True, session_seconds=1.0)
    spill = SpillSettings(to="bulk", held_share=3 / 64)
    pools = Pools(fast(engine=engine(cache=cache), spill=spill), bulk())
    assert pools.add("turn-1", 12, 2, session_id="s") == "fast"
    pools.run()
    assert pools.add("meanwhile", 8) == "bulk"
    pools.run_for(2 * 10**9)
    assert pools.core.held_blocks == 0
    assert pools.add("later", 8) == "fast"


def test_the_oldest_session_lets_go_when_all_hold_too_much() -> None:
    engine = _with_sessions(blocks=7)
    for name in "abc":
        engine.add(name, prompt(12, ord(name)), max_tokens=2, terms=_session(name))
        engine.run()
    assert {holding.holder for holding in engine.core.kv_holdings()} == {"b", "c"}


def test_a_session_longer_than_the_limit_is_held_as_far_as_the_limit_goes() -> None:
    engine = _with_sessions(blocks=2)
    engine.add("a", prompt(20), max_tokens=2, terms=_session("s"))
    engine.run()
    assert engine.core.held_blocks == 2


def test_sessions_make_room_for_those_that_want_to_run() -> None:
    engine = _with_sessions(num_blocks=10)
    for name in "ab":
        engine.add(name, prompt(12, ord(name)), max_tokens=2, terms=_session(name))
        engine.run()
    engine.add("small", prompt(8, 500), max_tokens=5)
    engine.run()
    assert {holding.holder for holding in engine.core.kv_holdings()} == {"a", "b"}
    engine.add("middle", prompt(16, 600), max_tokens=9)
    engine.run()
    assert {holding.holder for holding in engine.core.kv_holdings()} == {"b"}
    engine.add("all", prompt(30, 700), max_tokens=11)
    assert engine.run()["all"].state is RequestState.FINISHED
    assert engine.core.held_blocks == 0


def test_an_aborted_turn_leaves_the_session_what_the_turn_before_left_it() -> None:
    engine = _with_sessions()
    engine.add("turn-1", prompt(12), max_tokens=2, terms=_session("s"))
    engine.run()
    engine.add("turn-2", prompt(12) + prompt(12, 300), max_tokens=9, terms=_session("s"))
    engine.step()
    engine.core.abort("turn-2", AbortCause.DISCONNECT)
    engine.step()
    assert engine.core.held_blocks == 3


def test_the_listing_names_the_one_that_never_lets_go() -> None:
    engine = CachedEngine()
    engine.add("endless", prompt(4), max_tokens=200)
    engine.step(30)
    engine.add("short", prompt(4), max_tokens=9)
    engine.step(3)
    holdings = engine.core.kv_holdings()
    assert [(holding.holder, holding.blocks) for holding in holdings] == [("endless", 9), ("short", 2)]
    assert holdings[0].held_seconds == pytest.approx((1040 + 29 * 1100 + 1140 + 2 * 1200) / 1e9)


def test_a_drain_lets_everything_end_and_takes_nothing_new() -> None:
    engine = CachedEngine(max_active_requests=1)
    for i in range(3):
        engine.add(f"r{i}", prompt(4, i), max_tokens=5)
    engine.step()
    engine.core.shut_down(drain=True)
    engine.add("late", prompt(4), max_tokens=1)
    ended = engine.run()
    assert {name for name, request in ended.items() if request.state is RequestState.FINISHED} == {"r0", "r1", "r2"}
    assert ended["late"].error == ("Request late was rejected: the engine is shutting down and takes no new requests.")
    engine.core.reopen()
    engine.add("later", prompt(4), max_tokens=1)
    assert engine.run()["later"].state is RequestState.FINISHED


def test_a_drain_that_takes_too_long_is_given_up() -> None:
    engine = CachedEngine(max_active_requests=1, timeouts=TimeoutSettings(drain_s=10e-6))
    engine.add("long", prompt(4), max_tokens=90)
    engine.add("waiting", prompt(4), max_tokens=90)
    engine.step()
    engine.core.shut_down(drain=True)
    engine.run()
    assert engine.core.aborts_by_cause == {AbortCause.SHUTDOWN: 2}
    assert engine.clock.now_ns() < 20_000


def test_a_shutdown_without_a_drain_gives_everything_up_at_once_also_what_came_in_with_it() -> None:
    engine = CachedEngine(max_active_requests=1)
    engine.add("active", prompt(4), max_tokens=90)
    engine.add("waiting", prompt(4), max_tokens=90)
    engine.step()
    engine.core.shut_down(drain=False)
    engine.add("late", prompt(4), max_tokens=90)
    assert set(engine.step()) == {"active", "waiting", "late"}
    assert engine.core.aborts_by_cause == {AbortCause.SHUTDOWN: 2}
    assert engine.ended["late"].state is RequestState.REJECTED
    assert engine.core.held_blocks == 0


def test_times_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"TimeoutSettings\.request_s is 0; expected above 0, or None"):
        TimeoutSettings(request_s=0)
    with pytest.raises(ConfigurationError, match=r"RequestTerms\.timeout_s is -1; expected above 0, or None"):
        RequestTerms(timeout_s=-1)
    with pytest.raises(ConfigurationError, match=r"RequestTerms.turn_starts is \(5, 3\); expected rising positions"):
        RequestTerms(turn_starts=(5, 3))
