"""A target whose every delay is given beforehand: an oracle for the driver and the metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace

from quantgate.targets.base import ArmDescription, ArmRole, EngineTimes, RequestEnd, TokenEvent
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import Clock
from quantgate_engine.step_record import StepRecord


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """How one request is served, from the moment a slot is free for it.

    token_delays_ns: wait before each token (one token each, ids 1, 2, 3 ...).
    error: raised after the last token instead of ending the stream.
    """

    token_delays_ns: tuple[int, ...]
    end: RequestEnd = field(default_factory=lambda: RequestEnd("finished", "length"))
    error: Exception | None = None


class ScriptedTarget:
    """Serves at most `slots` requests at a time, first come first served, each as `script(request)` says."""

    def __init__(
        self,
        script: Callable[[PlannedRequest], ScriptedAnswer],
        clock: Clock,
        *,
        slots: int,
        arm_id: str = "scripted",
        role: ArmRole = "baseline",
    ) -> None:
        self._script = script
        self._clock = clock
        self._slots = asyncio.Semaphore(slots)
        self.open_requests: set[str] = set()
        self.served: list[str] = []
        self.description = ArmDescription(
            arm_id=arm_id, role=role, target="scripted", model="none", scheme=arm_id, kv_dtype="none",
            compute_dtype="none", head_dtype="none", weight_bytes=0, linear_weight_bytes=0, load_seconds=0.0,
            kernel_set="none", kernel_paths={},
        )  # fmt: skip

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""

    async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
        self.served.append(request.request_id)
        self.open_requests.add(request.request_id)
        arrived_ns = self._clock.now_ns()
        try:
            async with self._slots:
                admitted_ns = self._clock.now_ns()
                answer = self._script(request)
                first_token_ns = None
                for token_id, delay_ns in enumerate(answer.token_delays_ns, start=1):
                    await asyncio.sleep(delay_ns / 1e9)
                    first_token_ns = first_token_ns or self._clock.now_ns()
                    yield TokenEvent((token_id,))
                if answer.error is not None:
                    raise answer.error
            times = EngineTimes(arrived_ns, admitted_ns, first_token_ns, self._clock.now_ns())
            yield TokenEvent(end=replace(answer.end, engine=times))
        finally:
            self.open_requests.discard(request.request_id)

    def take_steps(self) -> list[StepRecord]:
        return []

    def decode_text(self, token_ids: list[int]) -> str:
        return " ".join(str(token_id) for token_id in token_ids)
