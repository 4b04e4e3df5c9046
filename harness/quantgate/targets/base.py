"""A target is anything that can serve a request stream; an arm is one precision of one model on one target."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from quantgate.workload.plan import PlannedRequest
from quantgate_engine.outputs import EngineTimes
from quantgate_engine.outputs import StreamChunk as TokenEvent
from quantgate_engine.outputs import StreamEnd as RequestEnd
from quantgate_engine.step_record import StepRecord

# How a request streams and ends is the same for every target, so the harness speaks the engine's own types.
__all__ = ["ArmDescription", "ArmRole", "EngineTimes", "RequestEnd", "Target", "TokenEvent"]

ArmRole = Literal["baseline", "candidate", "aa"]


@dataclass(frozen=True, slots=True)
class ArmDescription:
    """What an arm is, as measured from the loaded target (not as configured): goes into the manifest and the report."""

    arm_id: str
    role: ArmRole
    target: str
    model: str
    scheme: str
    kv_dtype: str
    compute_dtype: str
    head_dtype: str
    weight_bytes: int
    linear_weight_bytes: int
    load_seconds: float
    kernel_set: str
    kernel_paths: dict[str, str] = field(hash=False)
    notes: tuple[str, ...] = ()


class Target(Protocol):
    """One arm's server. `submit` yields token events and ends with exactly one event whose `end` is set.

    Closing the generator early (`aclose`) is a disconnect: the target must free what the request held.
    """

    @property
    def description(self) -> ArmDescription: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]: ...

    def take_steps(self) -> list[StepRecord]:
        """The step records since the last call (empty where the target has none)."""
        ...

    def decode_text(self, token_ids: list[int]) -> str: ...
