"""Readers of an AsyncLLM over the simulated executor, and a gate that holds its steps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from tests.engine.simulation import Simulation, prompt

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.outputs import StreamChunk
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


def run(simulation: Simulation, scenario: Callable[[AsyncLLM], Awaitable[None]]) -> None:
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


async def read(engine: AsyncLLM, name: str, length: int, max_tokens: int) -> list[StreamChunk]:
    params = SamplingParams(max_tokens=max_tokens)
    return [chunk async for chunk in engine.stream(name, prompt(length), params)]


def tokens_of(chunks: list[StreamChunk]) -> tuple[int, ...]:
    return tuple(token for chunk in chunks for token in chunk.token_ids)
