"""A share of the soak that `benchmarks/soak.py` runs a hundred times as long."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.engine.soak import CONFIG, STEPS_BETWEEN_CHECKS, Soak, living_requests
from tests.engine.soak_windows import growth

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.compute_thread import on_compute_thread
from quantgate_engine.executor.simulated import SimulatedExecutor
from quantgate_engine.live_requests import LiveRequests
from quantgate_engine.request import AbortCause, Request
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.step_result import StepResult

SEED = 20_231_116


MOST_LEFT_BEHIND = 0.1
"""Blocks of Python's allocator for each request; a request kept by mistake is a hundred."""


def left_behind_by(requests: int) -> int:
    soak = Soak(requests=requests, seed=SEED, cycle_s=6.0)
    soak.run()
    return soak.blocks_left_behind()


def test_ten_thousand_requests_leave_nothing_behind() -> None:
    before = living_requests()
    soak = Soak(requests=10_000, seed=SEED, cycle_s=6.0)
    soak.run()
    ends = soak.ends
    assert ends.keys() == {"finished", "disconnect", "timeout"}
    assert 0.04 < ends["disconnect"] / 10_000 < 0.06
    assert 0.013 < ends["timeout"] / 10_000 < 0.027
    totals = soak.core.totals
    assert totals.steps > 4 * STEPS_BETWEEN_CHECKS
    assert totals.oom_count == 0
    assert totals.preemption_count > 0
    assert totals.cached_prompt_tokens > 0
    # In each cycle three times the capacity arrives for a second: more wait than can run.
    assert soak.peak_waiting > CONFIG.max_active_requests
    assert all(0.5 < window.kv_utilization <= 1 for window in soak.windows)
    # What any run leaves (its own books, what is made once for good) is left by a short one too.
    assert soak.blocks_left_behind() - left_behind_by(2_000) < MOST_LEFT_BEHIND * 8_000
    del soak, totals
    assert living_requests() == before


def test_a_leak_shows_in_the_growth_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Request] = []
    give_up = LiveRequests.give_up

    def keep(self: LiveRequests, request: Request, cause: AbortCause, result: StepResult) -> None:
        kept.append(request)
        give_up(self, request, cause, result)

    monkeypatch.setattr(LiveRequests, "give_up", keep)
    soak = Soak(requests=4_000, seed=SEED, cycle_s=6.0)
    soak.run()
    assert growth(soak.windows, lambda window: window.python_blocks) > 1.1
    assert soak.blocks_left_behind() - left_behind_by(2_000) > 10 * MOST_LEFT_BEHIND * 2_000


def test_streams_that_are_left_early_leave_neither_tasks_nor_threads_nor_blocks() -> None:
    clock = VirtualClock()
    executor = SimulatedExecutor(clock, num_blocks=64)
    core = EngineCore(executor, EngineConfig(max_active_requests=8), clock)

    async def read(engine: AsyncLLM, number: int) -> None:
        stream = engine.stream(f"r{number}", range(1, 30), SamplingParams(max_tokens=12))
        async for _ in stream:
            if number % 20 == 0:
                break
        await stream.aclose()

    async def soak() -> int:
        engine = AsyncLLM(core)
        await engine.start()
        await asyncio.gather(*(read(engine, number) for number in range(400)))
        await engine.stop(drain=True)
        return len(asyncio.all_tasks())

    # It lives as long as the program, and starts with the first engine.
    on_compute_thread(lambda: None)
    threads = threading.active_count()
    assert asyncio.run(soak()) == 1
    assert threading.active_count() == threads
    assert core.held_blocks == 0
    # One that is left when its last token was drawn already has finished.
    assert core.aborts_by_cause.keys() <= {AbortCause.DISCONNECT}
