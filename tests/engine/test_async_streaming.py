"""AsyncLLM over the simulated executor: delivery, disconnects, shutdown, failures, and the thread's life."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest
from tests.engine.simulation import Simulation, expected_tokens, prompt

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.outputs import StreamChunk
from quantgate_engine.request import AbortCause
from quantgate_engine.sampling_params import SamplingParams

LIMIT_S = 20
"""Only to turn a hang into a failure."""


class Gate:
    """Lets `free_steps` steps pass, then holds the step thread in the middle of the next until the test lets it go."""

    def __init__(self, free_steps: int = 0) -> None:
        self.entered = threading.Event()
        self._open = threading.Event()
        self._free_steps = free_steps

    def __call__(self, _sequences: tuple[ScheduledSequence, ...]) -> None:
        self._free_steps -= 1
        if self._free_steps >= 0:
            return
        self.entered.set()
        assert self._open.wait(LIMIT_S)

    def release(self) -> None:
        self._open.set()

    async def wait_entered(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, LIMIT_S)


def _run(simulation: Simulation, scenario: Callable[[AsyncLLM], Awaitable[None]]) -> None:
    async def with_engine() -> None:
        engine = AsyncLLM(simulation.core)
        await engine.start()
        try:
            await scenario(engine)
        finally:
            await engine.stop()

    asyncio.run(asyncio.wait_for(with_engine(), LIMIT_S))
    assert "quantgate-engine-steps" not in [thread.name for thread in threading.enumerate()]
    simulation.core.check_integrity()
    assert simulation.core.held_blocks == 0


async def _read(engine: AsyncLLM, name: str, length: int, max_tokens: int) -> list[StreamChunk]:
    params = SamplingParams(max_tokens=max_tokens)
    return [chunk async for chunk in engine.stream(name, prompt(length), params)]


def _tokens(chunks: list[StreamChunk]) -> tuple[int, ...]:
    return tuple(token for chunk in chunks for token in chunk.token_ids)


def test_many_streams_at_once_get_each_their_own_tokens_and_one_end() -> None:
    simulation = Simulation()

    async def scenario(engine: AsyncLLM) -> None:
        streams = await asyncio.gather(*(_read(engine, f"r{i}", 3 + 2 * i, 4 + i) for i in range(8)))
        for i, chunks in enumerate(streams):
            assert _tokens(chunks) == expected_tokens(prompt(3 + 2 * i), 4 + i)
            assert [chunk.end is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
            end = chunks[-1].end
            assert end is not None
            assert (end.status, end.finish_reason) == ("finished", "length")
            assert end.engine is not None
            assert end.engine.finished_ns is not None
        records = engine.take_steps()
        assert sum(record.prefill_tokens for record in records) == sum(3 + 2 * i for i in range(8))
        assert engine.take_steps() == []

    _run(simulation, scenario)


def test_work_that_comes_to_an_idle_engine_wakes_it() -> None:
    async def scenario(engine: AsyncLLM) -> None:
        for i in range(20):
            assert len(_tokens(await _read(engine, f"r{i}", 3, 2))) == 2

    _run(Simulation(), scenario)


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
        await _read(engine, "a", 3, 5)
        taken = steps
        for _ in range(200):
            await asyncio.sleep(0)
        assert steps == taken == 5

    _run(simulation, scenario)


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
        await engine.stop()
        engine._wake = watched = _WatchedEvent()
        await engine.start()
        await _read(engine, "a", 3, 5)
        # A thread that spins passes the limit within this moment; one that sleeps never does, however long it is.
        assert not await asyncio.to_thread(watched.spinning.wait, 0.1)

    _run(Simulation(), scenario)


def test_closing_the_iterator_in_the_middle_of_a_step_frees_its_blocks_at_the_end_of_that_step() -> None:
    simulation = Simulation()
    gate = Gate(free_steps=1)
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        stream = engine.stream("a", prompt(6), SamplingParams(max_tokens=100))
        assert (await anext(stream)).end is None
        await gate.wait_entered()
        await stream.aclose()
        steps_before = len(simulation.executor.steps)
        gate.release()
        await _read(engine, "b", 3, 1)
        named = [[sequence.request_id for sequence in step] for step in simulation.executor.steps[steps_before:]]
        assert named == [["b"]]
        assert simulation.core.aborts_by_cause == {AbortCause.DISCONNECT: 1}

    _run(simulation, scenario)


def test_cancelling_the_reading_task_is_a_disconnect() -> None:
    simulation = Simulation()
    gate = Gate()
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        reader = asyncio.create_task(_read(engine, "a", 4, 50))
        await gate.wait_entered()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        gate.release()
        await _read(engine, "b", 3, 1)
        assert simulation.core.aborts_by_cause == {AbortCause.DISCONNECT: 1}

    _run(simulation, scenario)


@pytest.mark.parametrize("cause", [AbortCause.TIMEOUT, AbortCause.CANCELLED])
def test_an_abort_ends_the_stream_with_its_cause_and_without_what_the_step_drew(cause: AbortCause) -> None:
    simulation = Simulation()
    gate = Gate(free_steps=1)
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        reader = asyncio.create_task(_read(engine, "a", 6, 100))
        await gate.wait_entered()
        engine.abort("a", cause)
        gate.release()
        first, last = await reader
        assert first.token_ids == expected_tokens(prompt(6), 1)
        assert last.token_ids == ()
        assert last.end is not None
        assert (last.end.status, last.end.abort_cause, last.end.finish_reason) == ("aborted", cause.value, None)

    _run(simulation, scenario)
    assert simulation.core.aborts_by_cause == {cause: 1}


def test_a_rejected_request_has_an_end_with_the_reason_and_no_tokens() -> None:
    async def scenario(engine: AsyncLLM) -> None:
        [chunk] = await _read(engine, "a", 600, 1)
        assert chunk.token_ids == ()
        assert chunk.end is not None
        assert chunk.end.status == "rejected"
        assert "above the context limit of 512" in str(chunk.end.error)

    _run(Simulation(), scenario)


def test_stop_ends_open_streams_with_cause_shutdown_and_refuses_new_ones() -> None:
    simulation = Simulation()
    gate = Gate()
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        reader = asyncio.create_task(_read(engine, "a", 4, 50))
        await gate.wait_entered()
        stopping = asyncio.create_task(engine.stop())
        await asyncio.sleep(0)
        with pytest.raises(RunError, match="it is not running"):
            await _read(engine, "b", 4, 1)
        gate.release()
        await stopping
        chunks = await reader
        assert chunks[-1].end is not None
        assert (chunks[-1].end.status, chunks[-1].end.abort_cause) == ("aborted", "shutdown")

    _run(simulation, scenario)


def test_an_engine_can_be_started_again_and_is_nobody_elses_meanwhile() -> None:
    simulation = Simulation()

    async def scenario(engine: AsyncLLM) -> None:
        with pytest.raises(RunError, match="The engine is busy"):
            await AsyncLLM(simulation.core).start()
        await engine.stop()
        await engine.stop()
        await engine.start()
        assert len(_tokens(await _read(engine, "a", 4, 3))) == 3

    _run(simulation, scenario)


def test_a_failing_step_fails_its_streams_and_the_engine_serves_on() -> None:
    simulation = Simulation()

    def fail(_sequences: tuple[ScheduledSequence, ...]) -> None:
        simulation.executor.hook = None
        raise ValueError("planted")

    simulation.executor.hook = fail

    async def scenario(engine: AsyncLLM) -> None:
        [chunk] = await _read(engine, "a", 4, 3)
        assert chunk.end is not None
        assert (chunk.end.status, chunk.end.error) == ("failed", "ValueError: planted")
        assert _tokens(await _read(engine, "b", 4, 3)) == expected_tokens(prompt(4), 3)

    _run(simulation, scenario)


def test_a_defect_of_the_step_loop_reaches_every_reader_and_every_later_one() -> None:
    simulation = Simulation()

    def broken_step() -> None:
        raise RuntimeError("the books do not add up")

    simulation.core.step = broken_step

    async def scenario(engine: AsyncLLM) -> None:
        for chunks in await asyncio.gather(_read(engine, "a", 4, 3), _read(engine, "b", 4, 3)):
            assert chunks[-1].end is not None
            assert chunks[-1].end.status == "failed"
            assert chunks[-1].end.error == "RuntimeError: the books do not add up"
        with pytest.raises(RunError, match="the books do not add up"):
            await _read(engine, "c", 4, 3)

    _run(simulation, scenario)


def test_two_open_streams_cannot_have_one_id() -> None:
    simulation = Simulation()
    gate = Gate()
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        reader = asyncio.create_task(_read(engine, "a", 4, 3))
        await gate.wait_entered()
        with pytest.raises(ConfigurationError, match="'a' belongs to a stream that is open"):
            await _read(engine, "a", 4, 3)
        gate.release()
        assert _tokens(await reader) == expected_tokens(prompt(4), 3)

    _run(simulation, scenario)


def test_a_reader_that_has_enough_ends_its_request_as_finished() -> None:
    simulation = Simulation()
    gate = Gate(free_steps=2)
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        stream = engine.stream("a", prompt(6), SamplingParams(max_tokens=100))
        first = await anext(stream)
        await gate.wait_entered()
        engine.finish("a")
        gate.release()
        rest = [chunk async for chunk in stream]
        assert _tokens([first, *rest]) == expected_tokens(prompt(6), 2)
        assert rest[-1].end is not None
        assert (rest[-1].end.status, rest[-1].end.finish_reason) == ("finished", "stop")
        assert rest[-1].end.engine is not None
        assert rest[-1].end.engine.finished_ns is not None

    _run(simulation, scenario)
    assert simulation.core.aborts_by_cause == {}


def test_a_reader_too_slow_for_its_queue_is_given_up_and_told_so() -> None:
    simulation = Simulation()

    async def scenario() -> None:
        engine = AsyncLLM(simulation.core, max_unread_chunks=3)
        await engine.start()
        slow = engine.stream("slow", prompt(4), SamplingParams(max_tokens=200))
        chunks = [await anext(slow)]
        while not simulation.core.aborts_by_cause:
            await asyncio.sleep(0.001)
        chunks += [chunk async for chunk in slow]
        got = _tokens(chunks)
        # The first token was taken before the queue was full, or after.
        assert len(got) in (3, 4)
        assert got == expected_tokens(prompt(4), len(got))
        assert chunks[-1].end is not None
        assert (chunks[-1].end.status, chunks[-1].end.abort_cause) == ("aborted", "backpressure")
        quick = [chunk async for chunk in engine.stream("quick", prompt(4), SamplingParams(max_tokens=3))]
        assert _tokens(quick) == expected_tokens(prompt(4), 3)
        await engine.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    assert simulation.core.aborts_by_cause == {AbortCause.BACKPRESSURE: 1}
    assert simulation.core.held_blocks == 0
