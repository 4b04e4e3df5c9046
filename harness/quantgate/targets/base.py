"""A target is anything that can serve a request stream; an arm is one precision of one model on one target."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from quantgate.workload.plan import PlannedRequest
from quantgate_engine.step_record import StepRecord

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


@dataclass(frozen=True, slots=True)
class EngineTimes:
    """Time points of a finished request on the engine's clock (ns); None where it never got there."""

    arrived_ns: int
    admitted_ns: int | None
    first_token_ns: int | None
    finished_ns: int | None


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """How a request ended, and what it cost.

    status: finished | aborted | rejected | failed; finish_reason: stop | length | None.
    """

    status: Literal["finished", "aborted", "rejected", "failed"]
    finish_reason: str | None = None
    abort_cause: str | None = None
    error: str | None = None
    engine: EngineTimes | None = None
    preemptions: int = 0
    recomputed_tokens: int = 0
    cached_prompt_tokens: int = 0
    kv_peak_blocks: int = 0
    kv_block_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """New tokens of a stream, or its end; the driver stamps the arrival on its own clock."""

    token_ids: tuple[int, ...] = ()
    end: RequestEnd | None = None


class Target(Protocol):
    """One arm's server. `submit` yields token events and ends with exactly one event whose `end` is set.

    Closing the iterator early (`aclose`) is a disconnect: the target must free what the request held.
    """

    @property
    def description(self) -> ArmDescription: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def submit(self, request: PlannedRequest) -> AsyncIterator[TokenEvent]: ...

    def take_steps(self) -> list[StepRecord]:
        """The step records since the last call (empty where the target has none)."""
        ...

    def decode_text(self, token_ids: list[int]) -> str: ...
