"""Step loops that end otherwise than by `stop`: interrupts, event loops that are gone, starts that come amid work."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.async_engine import LIMIT_S, Gate, read, run, tokens_of
from tests.engine.simulation import Simulation, expected_tokens, prompt

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.errors import RunError
from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.executor.compute_thread import THREAD_NAME, on_compute_thread
from quantgate_engine.outputs import StreamChunk, end_of
from quantgate_engine.request import AbortCause, Request
from quantgate_engine.sampling_params import SamplingParams

LONG = SamplingParams(max_tokens=200)


def _is_free(simulation: Simulation) -> bool:
    """Whether nobody steps the engine, and nothing of anybody is left in it."""
    simulation.core.claim()
    simulation.core.relinquish()
    simulation.core.check_integrity()
    return not simulation.core.has_work and simulation.core.held_blocks == 0


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_an_interrupt_in_a_step_reaches_every_reader_and_frees_the_engine(interrupt: type[BaseException]) -> None:
    simulation = Simulation()

    def fail(_sequences: tuple[ScheduledSequence, ...]) -> None:
        simulation.executor.hook = None
        raise interrupt

    simulation.executor.hook = fail

    async def scenario(engine: AsyncLLM) -> None:
        for chunks in await asyncio.gather(read(engine, "a", 4, 3), read(engine, "b", 4, 3)):
            assert chunks[-1].end is not None
            assert (chunks[-1].end.status, chunks[-1].end.error) == ("failed", interrupt.__name__)
        with pytest.raises(RunError, match=f"takes no requests: {interrupt.__name__}"):
            await read(engine, "c", 4, 3)
        await engine.stop()
        assert _is_free(simulation)
        await engine.start()
        assert tokens_of(await read(engine, "a", 4, 3)) == expected_tokens(prompt(4), 3)

    run(simulation, scenario)


def test_a_loop_that_broke_lets_others_drive_the_engine_before_it_is_stopped() -> None:
    simulation = Simulation()
    simulation.core.forget = lambda: 1 // 0

    async def scenario(engine: AsyncLLM) -> None:
        await engine.forget()
        other = AsyncLLM(simulation.core)
        await other.start()
        await engine.stop()
        assert tokens_of(await read(other, "a", 4, 3)) == expected_tokens(prompt(4), 3)
        await other.stop()

    run(simulation, scenario)


def test_an_interrupt_while_the_rest_is_given_up_reaches_every_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation, gate = Simulation(), Gate()
    simulation.executor.hook = gate

    def fail(_cause: AbortCause) -> None:
        raise SystemExit

    async def scenario() -> None:
        engine = AsyncLLM(simulation.core)
        await engine.start()
        reader = asyncio.create_task(read(engine, "a", 4, 50))
        await gate.wait_entered()
        monkeypatch.setattr(simulation.core, "shut_down", lambda *, drain: None)
        monkeypatch.setattr(simulation.core, "abort_all", fail)
        stopping = asyncio.create_task(engine.stop())
        await asyncio.sleep(0)
        gate.release()
        await stopping
        end = (await reader)[-1].end
        assert end is not None
        assert (end.status, end.error) == ("failed", "SystemExit")

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    simulation.core.reopen()
    assert _is_free(simulation)


async def _started(simulation: Simulation) -> AsyncLLM:
    engine = AsyncLLM(simulation.core)
    await engine.start()
    return engine


async def _leave_idle(simulation: Simulation) -> AsyncLLM:
    engine = await _started(simulation)
    await read(engine, "a", 4, 3)
    return engine


async def _leave_running(simulation: Simulation) -> AsyncLLM:
    """Ends with a stream open, in steps of a millisecond."""
    simulation.executor.hook = lambda _sequences: time.sleep(0.001)
    engine = await _started(simulation)
    reader = asyncio.create_task(read(engine, "a", 4, 200))
    while not simulation.core.load.active_requests:
        await asyncio.sleep(0.001)
    assert not reader.done()
    return engine


async def _leave_unread(simulation: Simulation) -> AsyncLLM:
    """Ends in the middle of a request that has no reader, so that no task is left behind by a loop that only closes."""
    simulation.executor.hook = lambda _sequences: time.sleep(0.001)
    engine = await _started(simulation)
    simulation.core.add_request("a", prompt(4), LONG)
    # Of nobody, and so it only wakes the engine.
    engine.abort("b")
    return engine


@pytest.mark.parametrize("leave", [_leave_idle, _leave_running, _leave_unread])
def test_an_event_loop_that_ends_without_a_stop_frees_the_engine_at_once(leave: Callable[..., object]) -> None:
    simulation = Simulation()

    async def scenario() -> AsyncLLM:
        return await leave(simulation)

    left = asyncio.run(scenario())
    assert _is_free(simulation)

    async def again() -> None:
        await left.start()
        assert tokens_of(await read(left, "a", 4, 3)) == expected_tokens(prompt(4), 3)

    asyncio.run(again())
    assert _is_free(simulation)


@pytest.mark.parametrize("leave", [_leave_idle, _leave_unread])
def test_an_event_loop_that_is_only_closed_is_missed_soon(leave: Callable[..., object]) -> None:
    simulation, loop = Simulation(), asyncio.new_event_loop()
    engine = loop.run_until_complete(leave(simulation))
    loop.close()
    engine._steps._thread.join(LIMIT_S)
    assert _is_free(simulation)

    async def stop() -> None:
        await engine.stop()

    asyncio.run(stop())


def test_a_start_comes_after_what_is_left_on_the_compute_thread_and_holds_up_no_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation, go_on, order = Simulation(), threading.Event(), list[str]()
    reopen = simulation.core.reopen

    def left() -> None:
        assert go_on.wait(LIMIT_S)
        order.append("left")

    def watched() -> None:
        order.append(threading.current_thread().name)
        reopen()

    monkeypatch.setattr(simulation.core, "reopen", watched)
    caller = threading.Thread(target=lambda: on_compute_thread(left))

    async def scenario() -> None:
        caller.start()
        engine = AsyncLLM(simulation.core)
        starting = asyncio.create_task(engine.start())
        await asyncio.sleep(0.02)
        assert not starting.done()
        go_on.set()
        await starting
        await read(engine, "a", 4, 3)
        await engine.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    caller.join(LIMIT_S)
    assert order == ["left", THREAD_NAME]


def test_a_start_that_is_cancelled_or_fails_frees_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation, go_on = Simulation(), threading.Event()

    async def scenario() -> None:
        engine = AsyncLLM(simulation.core)
        with monkeypatch.context() as patch:
            patch.setattr(simulation.core, "reopen", lambda: go_on.wait(LIMIT_S))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(engine.start(), 0.02)
            go_on.set()
            while "quantgate-engine-steps" in [thread.name for thread in threading.enumerate()]:
                await asyncio.sleep(0.001)
            patch.setattr(simulation.core, "reopen", lambda: 1 // 0)
            with pytest.raises(RunError, match="The engine did not start: ZeroDivisionError"):
                await engine.start()
        await engine.start()
        assert tokens_of(await read(engine, "a", 4, 3)) == expected_tokens(prompt(4), 3)
        await engine.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    assert _is_free(simulation)


def test_who_takes_over_a_streams_id_reads_nothing_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation()
    requests: list[Request] = []
    add = simulation.core.add_request

    def remember(*arguments: Any) -> Request:
        # Whoever asks the engine for it later may come too late: it may have ended before its first token is read.
        requests.append(add(*arguments))
        return requests[-1]

    monkeypatch.setattr(simulation.core, "add_request", remember)

    async def scenario(engine: AsyncLLM) -> None:
        stream = engine.stream("a", prompt(6), LONG)
        await anext(stream)
        [before] = requests
        await stream.aclose()
        while simulation.core.has_work:
            await asyncio.sleep(0.001)
        again = asyncio.create_task(read(engine, "a", 4, 3))
        await asyncio.sleep(0)
        assert engine._steps is not None
        engine._steps._deliver({before: StreamChunk(end=end_of(before))})
        chunks = await again
        assert tokens_of(chunks) == expected_tokens(prompt(4), 3)
        assert chunks[-1].end is not None
        assert chunks[-1].end.status == "finished"

    run(simulation, scenario)
