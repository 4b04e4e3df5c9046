"""The engine's own scheduler with step costs instead of a model: what would happen, without computing it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from quantgate.targets.base import ArmDescription, ArmRole, TokenEvent
from quantgate.targets.engine_terms import EngineTerms
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import Clock
from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.simulated import StepCosts
from quantgate_engine.outputs import end_of
from quantgate_engine.request import AbortCause
from quantgate_engine.router.settings import PoolSettings
from quantgate_engine.router.simulated import SimulatedDevice, SimulatedRouter
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.step_record import StepRecord
from quantgate_engine.step_result import StepResult


class SimulatedTarget:
    """Serves requests at the speed that `costs` give, on the clock of the event loop (virtual or real).

    One engine with the settings `config`, whose pool has `num_blocks` blocks where the settings name no number; or the
    pools of `router`, which must have been made with the same clock.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        costs: StepCosts | None = None,
        config: EngineConfig | None = None,
        num_blocks: int = 1024,
        router: SimulatedRouter | None = None,
        arm_id: str = "simulated",
        role: ArmRole = "baseline",
    ) -> None:
        self._router = router or _lone_engine(clock, costs, config or EngineConfig(), num_blocks)
        self._core = self._router.core
        self._terms = EngineTerms(self._core.slo_classes)
        self._readers: dict[str, asyncio.Queue[TokenEvent]] = {}
        self._wakes = [asyncio.Event() for _ in self._router.devices]
        self._device_tasks: list[asyncio.Task[None]] = []
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
        self._device_tasks = [
            asyncio.create_task(self._run_steps(device, wake))
            for device, wake in zip(self._router.devices, self._wakes, strict=True)
        ]

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """See `BundledEngineTarget.turn`."""
        self._terms.begin_turn()
        self._core.forget()
        yield
        self._core.forget()

    async def stop(self) -> None:
        if not self._device_tasks:
            return
        for task in self._device_tasks:
            task.cancel()
        await asyncio.wait(self._device_tasks)
        self._device_tasks = []
        self._core.relinquish()

    async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
        events: asyncio.Queue[TokenEvent] = asyncio.Queue()
        self._readers[request.request_id] = events
        ended = False
        try:
            params = SamplingParams(max_tokens=request.output_tokens, ignore_eos=request.ignore_eos)
            terms = self._terms.of(request)
            # An idle engine takes no steps, and its sessions' time passes all the same.
            self._core.expire_sessions()
            self._core.add_request(request.request_id, request.prompt_token_ids, params, terms)
            self._wake_devices()
            while not ended:
                event = await events.get()
                ended = event.end is not None
                yield event
        finally:
            del self._readers[request.request_id]
            if not ended:
                self._core.abort(request.request_id, AbortCause.DISCONNECT)
                self._wake_devices()

    def take_steps(self) -> list[StepRecord]:
        return self._core.take_steps()

    def decode_text(self, token_ids: list[int]) -> str:
        return " ".join(str(token_id) for token_id in token_ids)

    def _wake_devices(self) -> None:
        for wake in self._wakes:
            wake.set()

    async def _run_steps(self, device: SimulatedDevice, wake: asyncio.Event) -> None:
        while True:
            while not device.has_work:
                wake.clear()
                await wake.wait()
            result, duration_ns = device.step()
            await asyncio.sleep(duration_ns / 1e9)
            self._publish(result)

    def _publish(self, result: StepResult) -> None:
        tokens = {request.request_id: (token.token_id,) for request, token in result.tokens}
        ends = {request.request_id: end_of(request) for request in result.ended}
        for request_id in tokens | ends:
            if request_id in self._readers:
                self._readers[request_id].put_nowait(TokenEvent(tokens.get(request_id, ()), end=ends.get(request_id)))


def _lone_engine(clock: Clock, costs: StepCosts | None, config: EngineConfig, num_blocks: int) -> SimulatedRouter:
    sized = replace(config, num_kv_blocks=config.num_kv_blocks or num_blocks)
    return SimulatedRouter([PoolSettings("engine", sized)], clock=clock, costs=costs)
