"""AsyncLLM over the simulated executor: delivery, failures, and the thread's life."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.engine.async_engine import Gate, read, run, tokens_of
from tests.engine.simulation import Simulation, expected_tokens, prompt

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.base import ScheduledSequence


def test_many_streams_at_once_get_each_their_own_tokens_and_one_end() -> None:
    simulation = Simulation()

    async def scenario(engine: AsyncLLM) -> None:
        streams = await asyncio.gather(*(read(engine, f"r{i}", 3 + 2 * i, 4 + i) for i in range(8)))
        for i, chunks in enumerate(streams):
            assert tokens_of(chunks) == expected_tokens(prompt(3 + 2 * i), 4 + i)
            assert [chunk.end is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
            end = chunks[-1].end
            assert end is not None
            assert (end.status, end.finish_reason) == ("finished", "length")
            assert end.engine is not None
            assert end.engine.finished_ns is not None
        records = engine.take_steps()
        assert sum(record.prefill_tokens for record in records) == sum(3 + 2 * i for i in range(8))
        assert engine.take_steps() == []

    run(simulation, scenario)


def test_work_that_comes_to_an_idle_engine_wakes_it() -> None:
    async def scenario(engine: AsyncLLM) -> None:
        for i in range(20):
            assert len(tokens_of(await read(engine, f"r{i}", 3, 2))) == 2

    run(Simulation(), scenario)


def test_an_idle_engine_takes_no_steps() -> None:
    simulation = Simulation()
    steps = 0
    original = simulation.core.step

    def counted_step() -> object:
        nonlocal steps
        steps += 1
        return original()

    simulation.core.step = counted_step

    async def scenario(engine: AsyncLLM) -> None:
        await read(engine, "a", 3, 5)
        taken = steps
        for _ in range(200):
            await asyncio.sleep(0)
        assert steps == taken == 5

    run(simulation, scenario)


class _WatchedEvent(threading.Event):
    """Tells when somebody has come to wait on it far more often than there was anything to wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0
        self.spinning = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.waits += 1
        if self.waits > 100:
            self.spinning.set()
        return super().wait(timeout)


def test_an_idle_engine_does_not_spin() -> None:
    async def scenario(engine: AsyncLLM) -> None:
        steps, watched = engine._steps, _WatchedEvent()
        assert steps is not None
        steps._wake, earlier = watched, steps._wake
        earlier.set()
        await read(engine, "a", 3, 5)
        # A thread that spins passes the limit within this moment; one that sleeps never does, however long it is.
        assert not await asyncio.to_thread(watched.spinning.wait, 0.1)

    run(Simulation(), scenario)


def test_a_rejected_request_has_an_end_with_the_reason_and_no_tokens() -> None:
    async def scenario(engine: AsyncLLM) -> None:
        [chunk] = await read(engine, "a", 600, 1)
        assert chunk.token_ids == ()
        assert chunk.end is not None
        assert chunk.end.status == "rejected"
        assert "above the context limit of 512" in str(chunk.end.error)

    run(Simulation(), scenario)


def test_an_engine_can_be_started_again_and_is_nobody_elses_meanwhile() -> None:
    simulation = Simulation()

    async def scenario(engine: AsyncLLM) -> None:
        with pytest.raises(RunError, match="The engine is busy"):
            await AsyncLLM(simulation.core).start()
        await engine.stop()
        await engine.stop()
        await engine.start()
        assert len(tokens_of(await read(engine, "a", 4, 3))) == 3

    run(simulation, scenario)


def test_a_failing_step_fails_its_streams_and_the_engine_serves_on() -> None:
    simulation = Simulation()

    def fail(_sequences: tuple[ScheduledSequence, ...]) -> None:
        simulation.executor.hook = None
        raise ValueError("planted")

    simulation.executor.hook = fail

    async def scenario(engine: AsyncLLM) -> None:
        [chunk] = await read(engine, "a", 4, 3)
        assert chunk.end is not None
        assert (chunk.end.status, chunk.end.error) == ("failed", "ValueError: planted")
        assert tokens_of(await read(engine, "b", 4, 3)) == expected_tokens(prompt(4), 3)

    run(simulation, scenario)


def test_a_defect_of_the_step_loop_reaches_every_reader_and_every_later_one() -> None:
    simulation = Simulation()

    def broken_step() -> None:
        raise RuntimeError("the books do not add up")

    simulation.core.step = broken_step

    async def scenario(engine: AsyncLLM) -> None:
        for chunks in await asyncio.gather(read(engine, "a", 4, 3), read(engine, "b", 4, 3)):
            assert chunks[-1].end is not None
            assert chunks[-1].end.status == "failed"
            assert chunks[-1].end.error == "RuntimeError: the books do not add up"
        with pytest.raises(RunError, match="the books do not add up"):
            await read(engine, "c", 4, 3)

    run(simulation, scenario)


def test_two_open_streams_cannot_have_one_id() -> None:
    simulation = Simulation()
    gate = Gate()
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        reader = asyncio.create_task(read(engine, "a", 4, 3))
        await gate.wait_entered()
        with pytest.raises(ConfigurationError, match="'a' belongs to a stream that is open"):
            await read(engine, "a", 4, 3)
        gate.release()
        assert tokens_of(await reader) == expected_tokens(prompt(4), 3)

    run(simulation, scenario)
