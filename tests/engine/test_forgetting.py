"""An engine that forgets meets the next requests as if they were its first."""

from __future__ import annotations

import asyncio

import pytest
from tests.engine.async_engine import LIMIT_S, read
from tests.engine.pools import Pools, bulk, engine

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.simulated import SimulatedExecutor
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.scheduler.admission.estimators import PastFuture
from quantgate_engine.scheduler.admission.settings import AdmissionSettings

KEEPING = CacheSettings(prefix_sharing=True, session_seconds=3600.0)


def cached_tokens(pools: Pools, name: str) -> int:
    pools.add(name, length=13, session_id="s")
    pools.run()
    return pools.ended[-1].cached_prompt_tokens


def test_sessions_and_cached_prefixes_are_dropped_in_every_pool() -> None:
    keeping = engine(cache=KEEPING)
    pools = Pools(bulk("a", engine=keeping), bulk("b", engine=keeping))
    assert cached_tokens(pools, "first") == 0
    assert cached_tokens(pools, "again") == 12
    assert pools.core.held_blocks > 0
    pools.core.forget()
    assert pools.core.held_blocks == 0
    assert pools.core.kv_holdings() == []
    assert [stay.kind for stay in pools.core.kv_greatest_holders()].count("session") == 1
    pools.core.check_integrity()
    assert cached_tokens(pools, "after") == 0


def test_what_a_live_request_holds_stays() -> None:
    pools = Pools(bulk(engine=engine(cache=KEEPING)))
    pools.add("running", length=13, max_tokens=40)
    pools.run_until(5_000)
    held = pools.core.held_blocks
    assert held > 0
    pools.core.forget()
    assert pools.core.held_blocks == held
    pools.run()
    assert [request.state.value for request in pools.ended] == ["finished"]


def test_lengths_that_admission_has_learned_are_forgotten() -> None:
    settings = AdmissionSettings(estimator="past-future", past_answers=2)
    estimator = PastFuture(settings)
    for length in (3, 4, 5):
        estimator.learn(length)
    estimator.forget()
    assert vars(estimator) == vars(PastFuture(settings))


def keeping_core() -> EngineCore:
    clock = VirtualClock()
    config = EngineConfig(block_size=4, max_active_requests=2, max_step_tokens=8, cache=KEEPING)
    return EngineCore(SimulatedExecutor(clock, num_blocks=64, block_size=4), config, clock)


def test_a_streaming_engine_forgets_when_it_has_come_to_rest() -> None:
    core = keeping_core()

    async def cached_tokens_of(llm: AsyncLLM, name: str) -> int:
        [*_, last] = await read(llm, name, 13, 40)
        assert last.end is not None
        return last.end.cached_prompt_tokens

    async def scenario() -> None:
        llm = AsyncLLM(core)
        await llm.start()
        assert [await cached_tokens_of(llm, "a"), await cached_tokens_of(llm, "b")] == [0, 12]
        await llm.forget()
        running = asyncio.create_task(cached_tokens_of(llm, "c"))
        await asyncio.sleep(0)
        await llm.forget()
        # It ran to its end first, and what it left is gone with the rest.
        assert await running == 0
        assert await cached_tokens_of(llm, "d") == 0
        await llm.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def test_nobody_waits_for_an_engine_that_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    core = keeping_core()
    monkeypatch.setattr(core, "forget", lambda: 1 // 0)

    async def scenario() -> None:
        llm = AsyncLLM(core)
        await llm.forget()
        await llm.start()
        await llm.forget()
        assert llm.failure is not None
        await llm.forget()
        await llm.stop()
        await llm.forget()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
