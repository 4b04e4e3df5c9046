"""What a run and its load processes say to each other, over the standard streams of the process."""

from __future__ import annotations

import asyncio
import pickle
import struct
from dataclasses import dataclass, replace
from typing import Any, Protocol

from quantgate.replay.observation import RequestObservation
from quantgate.targets.base import Target
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import Clock

_LENGTH = struct.Struct("!Q")


class TargetRecipe(Protocol):
    """Makes an arm's target; it can be pickled, so that another process has the same one."""

    def __call__(self, *, clock: Clock) -> Target: ...


@dataclass(frozen=True, slots=True)
class Job:
    """The first message to a load process, which starts the target; `timeout_ns` is that of the driver."""

    recipe: TargetRecipe
    timeout_ns: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """What the process is to send in the next cell."""

    requests: tuple[PlannedRequest, ...]


@dataclass(frozen=True, slots=True)
class Begin:
    """Sends the part: `anchor_ns` on the monotonic clock, which all processes of a machine share."""

    anchor_ns: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The target is started, or the part has come."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A request that has ended. Its prompt is left out: the run has it."""

    observation: RequestObservation

    @classmethod
    def of(cls, observation: RequestObservation) -> Ended:
        observation.request = replace(
            observation.request, prompt_token_ids=(), messages=None, prompt_text=None, checker=None
        )
        return cls(observation)


@dataclass(frozen=True, slots=True)
class Done:
    """Every request of the part has ended. `cpu_ns`: what the driver's thread computed since `Begin`."""

    cpu_ns: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The process cannot go on. target_gone: because its target is gone."""

    reason: str
    target_gone: bool


def write_message(writer: asyncio.StreamWriter, message: object) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    writer.write(_LENGTH.pack(len(data)) + data)


async def read_message(reader: asyncio.StreamReader) -> Any:
    """None where the other side has ended."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        data = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return pickle.loads(data)  # noqa: S301 - it comes from our own process, over a pipe that nobody else has
