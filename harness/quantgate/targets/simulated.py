"""The engine's own scheduler with step costs instead of a model: what would happen, without computing it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from quantgate.targets.base import ArmDescription, ArmRole, TokenEvent
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import Clock, VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.simulated import SimulatedExecutor, StepCosts
from quantgate_engine.outputs import end_of
from quantgate_engine.request import AbortCause
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.step_record import StepRecord
from quantgate_engine.step_result import StepResult


class _EngineClock:
    """The engine's time: the loop's, except inside a step, where it runs ahead by what the step costs."""

    def __init__(self, loop_clock: Clock) -> None:
        self._loop_clock = loop_clock
        self.step_clock = VirtualClock(loop_clock.now_ns())
        self._in_step = False

    def now_ns(self) -> int:
        return self.step_clock.now_ns() if self._in_step else self._loop_clock.now_ns()

    def begin_step(self) -> None:
        self.step_clock.advance_ns(self._loop_clock.now_ns() - self.step_clock.now_ns())
        self._in_step = True

    def end_step(self) -> int:
        """Nanoseconds that the loop has still to wait until the step is over."""
        self._in_step = False
        return self.step_clock.now_ns() - self._loop_clock.now_ns()


class SimulatedTarget:
    """Serves requests at the speed that `costs` give, on the clock of the event loop (virtual or real)."""

    def __init__(
        self,
        clock: Clock,
        *,
        costs: StepCosts | None = None,
        config: EngineConfig | None = None,
        num_blocks: int = 1024,
        arm_id: str = "simulated",
        role: ArmRole = "baseline",
    ) -> None:
        config = config or EngineConfig()
        self._clock = _EngineClock(clock)
        executor = SimulatedExecutor(self._clock.step_clock, costs, num_blocks=num_blocks, block_size=config.block_size)
        self._core = EngineCore(executor, config, self._clock)
        self._readers: dict[str, asyncio.Queue[TokenEvent]] = {}
        self._wake = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None
        self.description = ArmDescription(
            arm_id=arm_id, role=role, target="simulator", model="none", scheme=arm_id, kv_dtype="none",
            compute_dtype="none", head_dtype="none", weight_bytes=0, linear_weight_bytes=0, load_seconds=0.0,
            kernel_set="simulated", kernel_paths={},
        )  # fmt: skip

    @property
    def held_blocks(self) -> int:
        """KV blocks that requests hold now."""
        return self._core.held_blocks

    async def start(self) -> None:
        self._core.claim()
        self._loop_task = asyncio.create_task(self._run_steps())

    async def stop(self) -> None:
        if self._loop_task is None:
            return
        self._loop_task.cancel()
        await asyncio.wait([self._loop_task])
        self._loop_task = None
        self._core.relinquish()

    async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
        events: asyncio.Queue[TokenEvent] = asyncio.Queue()
        self._readers[request.request_id] = events
        ended = False
        try:
            params = SamplingParams(max_tokens=request.output_tokens, ignore_eos=request.ignore_eos)
            self._core.add_request(request.request_id, request.prompt_token_ids, params)
            self._wake.set()
            while not ended:
                event = await events.get()
                ended = event.end is not None
                yield event
        finally:
            del self._readers[request.request_id]
            if not ended:
                self._core.abort(request.request_id, AbortCause.DISCONNECT)
                self._wake.set()

    def take_steps(self) -> list[StepRecord]:
        return self._core.take_steps()

    def decode_text(self, token_ids: list[int]) -> str:
        return " ".join(str(token_id) for token_id in token_ids)

    async def _run_steps(self) -> None:
        while True:
            self._wake.clear()
            if not self._core.has_work:
                await self._wake.wait()
            self._clock.begin_step()
            result = self._core.step()
            await asyncio.sleep(self._clock.end_step() / 1e9)
            self._publish(result)

    def _publish(self, result: StepResult) -> None:
        tokens = {request.request_id: (token.token_id,) for request, token in result.tokens}
        ends = {request.request_id: end_of(request) for request in result.ended}
        for request_id in tokens | ends:
            if request_id in self._readers:
                self._readers[request_id].put_nowait(TokenEvent(tokens.get(request_id, ()), end=ends.get(request_id)))
