"""A target is anything that can serve a request stream; an arm is one precision of one model on one target."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from quantgate.targets.transfer import Transfer
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.errors import RunError
from quantgate_engine.kv.holding import KVHolding
from quantgate_engine.outputs import EngineTimes
from quantgate_engine.outputs import StreamEnd as RequestEnd
from quantgate_engine.step_record import StepRecord
from quantgate_kernels.roofline import DecoderWork

# How a request ends is the same for every target, so the harness speaks the engine's own types.
__all__ = [
    "BUNDLED_ENGINE",
    "ArmDescription",
    "ArmRole",
    "EngineTimes",
    "RequestEnd",
    "Target",
    "TargetGoneError",
    "TokenEvent",
]

BUNDLED_ENGINE = "bundled engine"
"""What an arm of the bundled engine calls its target."""

ArmRole = Literal["baseline", "candidate", "aa"]


class TargetGoneError(RunError):
    """The whole target is gone (its server died), not one request: the replay ends here and keeps what it has."""


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """A piece of an answer, its end, or both. Exactly one event of a stream has its `end` set: the last one.

    token_ids: where the target knows them as they come. text: where it streams text, whose number of tokens only
    `transfer`, beside the end, tells for sure; it may be empty, where a token completes no character or shows none.
    reasoning: the piece belongs to the reasoning before the answer. transfer: what is known so far; the last counts.
    """

    token_ids: tuple[int, ...] = ()
    text: str | None = None
    reasoning: bool = False
    end: RequestEnd | None = None
    transfer: Transfer | None = None

    @property
    def tokens(self) -> int:
        """As far as the event itself tells: one where text came without token ids."""
        return len(self.token_ids) or int(self.text is not None)


@dataclass(frozen=True, slots=True)
class ArmDescription:
    """What an arm is, as measured from the loaded target (not as configured): goes into the manifest and the report.

    None stands for what a target does not tell: a server's weight bytes and load time. `server` names the server
    behind an endpoint; `capabilities` is what its probe found. `kv_bytes_per_token`: keys and values of all layers.
    `kv_sessions`: those that held most of the cache between their turns. `step_work`: what its steps must
    at least read and compute; None where that is not known. `joules_per_token`: energy of the device in the arm's turns
    for each output token; None where the device does not tell. `recorded_steps`, `provenance`: as in `ModelInfo`.
    """

    arm_id: str
    role: ArmRole
    target: str
    model: str
    scheme: str
    kv_dtype: str
    compute_dtype: str
    head_dtype: str
    weight_bytes: int | None
    linear_weight_bytes: int | None
    load_seconds: float | None
    kernel_set: str
    kernel_paths: dict[str, str] = field(hash=False)
    notes: tuple[str, ...] = ()
    server: str | None = None
    tokenizer_fingerprint: str | None = None
    capabilities: dict[str, Any] = field(default_factory=dict, hash=False)
    kv_bytes_per_token: int | None = None
    kv_sessions: tuple[KVHolding, ...] = ()
    step_work: DecoderWork | None = None
    joules_per_token: float | None = None
    recorded_steps: int | None = None
    provenance: dict[str, Any] = field(default_factory=dict, hash=False)


class Target(Protocol):
    """One arm's server. `submit` yields token events and ends with exactly one event whose `end` is set.

    Closing the generator early (`aclose`) is a disconnect: the target must free what the request held. Raising
    TargetGoneError ends the replay; any other exception is the failure of that one request.
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
