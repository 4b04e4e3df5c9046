"""Streams that end before their requests would: readers that leave, have enough or are too slow, aborts, shutdown."""

from __future__ import annotations

import asyncio

import pytest
from tests.engine.async_engine import LIMIT_S, Gate, read, run, tokens_of
from tests.engine.simulation import Simulation, expected_tokens, prompt

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.errors import RunError
from quantgate_engine.request import AbortCause
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams


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
        await read(engine, "b", 3, 1)
        named = [[sequence.request_id for sequence in step] for step in simulation.executor.steps[steps_before:]]
        assert named == [["b"]]
        assert simulation.core.aborts_by_cause == {AbortCause.DISCONNECT: 1}

    run(simulation, scenario)


def test_cancelling_the_reading_task_is_a_disconnect() -> None:
    simulation = Simulation()
    gate = Gate()
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        reader = asyncio.create_task(read(engine, "a", 4, 50))
        await gate.wait_entered()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        gate.release()
        await read(engine, "b", 3, 1)
        assert simulation.core.aborts_by_cause == {AbortCause.DISCONNECT: 1}

    run(simulation, scenario)


@pytest.mark.parametrize("cause", [AbortCause.TIMEOUT, AbortCause.CANCELLED])
def test_an_abort_ends_the_stream_with_its_cause_and_without_what_the_step_drew(cause: AbortCause) -> None:
    simulation = Simulation()
    gate = Gate(free_steps=1)
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        reader = asyncio.create_task(read(engine, "a", 6, 100))
        await gate.wait_entered()
        engine.abort("a", cause)
        gate.release()
        first, last = await reader
        assert first.token_ids == expected_tokens(prompt(6), 1)
        assert last.token_ids == ()
        assert last.end is not None
        assert (last.end.status, last.end.abort_cause, last.end.finish_reason) == ("aborted", cause.value, None)

    run(simulation, scenario)
    assert simulation.core.aborts_by_cause == {cause: 1}


def test_stop_ends_open_streams_with_cause_shutdown_and_refuses_new_ones() -> None:
    simulation = Simulation()
    gate = Gate()
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        reader = asyncio.create_task(read(engine, "a", 4, 50))
        await gate.wait_entered()
        stopping = asyncio.create_task(engine.stop())
        await asyncio.sleep(0)
        with pytest.raises(RunError, match="it is not running"):
            await read(engine, "b", 4, 1)
        gate.release()
        await stopping
        chunks = await reader
        assert chunks[-1].end is not None
        assert (chunks[-1].end.status, chunks[-1].end.abort_cause) == ("aborted", "shutdown")

    run(simulation, scenario)


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
        assert tokens_of([first, *rest]) == expected_tokens(prompt(6), 2)
        assert rest[-1].end is not None
        assert (rest[-1].end.status, rest[-1].end.finish_reason) == ("finished", "stop")
        assert rest[-1].end.engine is not None
        assert rest[-1].end.engine.finished_ns is not None

    run(simulation, scenario)
    assert simulation.core.aborts_by_cause == {}


def test_a_stop_that_drains_lets_open_streams_come_to_their_ends() -> None:
    simulation = Simulation()
    gate = Gate(free_steps=1)
    simulation.executor.hook = gate

    async def scenario(engine: AsyncLLM) -> None:
        open_stream = asyncio.create_task(read(engine, "a", 4, 9))
        await gate.wait_entered()
        stopping = asyncio.create_task(engine.stop(drain=True))
        await asyncio.sleep(0)
        with pytest.raises(RunError, match="The engine takes no requests"):
            await read(engine, "late", 4, 1)
        gate.release()
        await stopping
        chunks = await open_stream
        assert tokens_of(chunks) == expected_tokens(prompt(4), 9)
        assert chunks[-1].end is not None
        assert chunks[-1].end.status == "finished"
        await engine.start()
        assert tokens_of(await read(engine, "again", 4, 2)) == expected_tokens(prompt(4), 2)

    run(simulation, scenario)


def test_a_stream_has_terms_of_its_own() -> None:
    simulation = Simulation()

    async def scenario(engine: AsyncLLM) -> None:
        terms = RequestTerms(slo_class="batch", timeout_s=2e-6)
        stream = engine.stream("a", prompt(4), SamplingParams(max_tokens=200), terms)
        chunks = [chunk async for chunk in stream]
        assert chunks[-1].end is not None
        assert (chunks[-1].end.status, chunks[-1].end.abort_cause) == ("aborted", "timeout")

    run(simulation, scenario)


def test_a_reader_too_slow_for_its_queue_is_given_up_and_told_so() -> None:
    simulation, gate = Simulation(), Gate(free_steps=10)
    simulation.executor.hook = gate

    async def scenario() -> None:
        engine = AsyncLLM(simulation.core, max_unread_chunks=3)
        await engine.start()
        slow = engine.stream("slow", prompt(4), SamplingParams(max_tokens=200))
        chunks = [await anext(slow)]
        # Ten tokens wait for a reader of three and the engine stands in its next step, or it has given up before that.
        while not (gate.entered.is_set() or simulation.core.aborts_by_cause):
            await asyncio.sleep(0.001)
        gate.release()
        chunks += [chunk async for chunk in slow]
        got = tokens_of(chunks)
        # The first token was taken before the queue was full, or after.
        assert len(got) in (3, 4)
        assert got == expected_tokens(prompt(4), len(got))
        assert chunks[-1].end is not None
        assert (chunks[-1].end.status, chunks[-1].end.abort_cause) == ("aborted", "backpressure")
        quick = [chunk async for chunk in engine.stream("quick", prompt(4), SamplingParams(max_tokens=3))]
        assert tokens_of(quick) == expected_tokens(prompt(4), 3)
        await engine.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    assert simulation.core.aborts_by_cause == {AbortCause.BACKPRESSURE: 1}
    assert simulation.core.held_blocks == 0
