"""Replays requests against scripted answers on a virtual clock, through the whole client above the socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from tests.replay.plans import MS, drive

from quantgate.capabilities.capabilities import Capabilities
from quantgate.replay.interleave import Cell
from quantgate.replay.observation import RequestObservation
from quantgate.replay.rows import request_table
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.base import TargetGoneError
from quantgate.targets.openai.scripted_transport import ScriptedTransport, SentRequest
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.targets.openai.target import OpenAITarget
from quantgate.targets.openai.wire_script import WireAnswer, models
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import VirtualClock

URL = "http://server:8000"
Script = Callable[[SentRequest], WireAnswer]


def asked(request_id: str, at_ms: int = 0, output_tokens: int = 3, **changes: Any) -> PlannedRequest:
    """A request whose prompt is its own id, so that a script can tell which one it serves."""
    fields = {"prompt_token_ids": (), "prompt_text": request_id} | changes
    return PlannedRequest(request_id, at_ms * MS, output_tokens=output_tokens, **fields)


def by_prompt(answers: dict[str, WireAnswer]) -> Script:
    return lambda request: answers[request.body["prompt"]]


@dataclass
class Replayed:
    seen: dict[str, RequestObservation] = field(default_factory=dict)
    gone: TargetGoneError | None = None
    transport: ScriptedTransport | None = None
    target: OpenAITarget | None = None

    @property
    def table(self) -> pa.Table:
        return request_table(Cell(0, 0, "http"), self.seen.values(), 0, lambda ids: "")

    @property
    def generations(self) -> list[SentRequest]:
        """What was sent, the questions about the server left out."""
        assert self.transport is not None
        return [request for request in self.transport.sent if request.method == "POST"]


def replay(
    script: Script | WireAnswer,
    *requests: PlannedRequest,
    slots: int = 64,
    timeout_ms: int | None = None,
    tokenizer: Any = None,
    capabilities: Capabilities | None = None,
    ask: Script = lambda request: models("tiny"),
    meanwhile: Callable[[ScriptedTransport], Awaitable[None]] | None = None,
    **settings: Any,
) -> Replayed:
    """`script` answers the generation requests, `ask` the others (GET); `meanwhile` runs beside the replay."""
    result = Replayed()

    async def main(clock: VirtualClock) -> None:
        def answer(request: SentRequest) -> WireAnswer:
            if request.method == "GET":
                return ask(request)
            return script if isinstance(script, WireAnswer) else script(request)

        transport = ScriptedTransport(answer, clock, slots=slots)
        target = OpenAITarget(
            EndpointSettings(url=URL, **settings),
            arm_id="http", role="baseline", clock=clock, tokenizer=tokenizer, capabilities=capabilities,
            transport=transport,
        )  # fmt: skip
        result.transport, result.target = transport, target
        await target.start()
        beside = asyncio.create_task(meanwhile(transport)) if meanwhile else None
        try:
            result.seen = await drive(target, clock, requests, None if timeout_ms is None else timeout_ms * MS)
        except TargetGoneError as gone:
            result.gone = gone
        finally:
            if beside is not None:
                await beside
            await target.stop()
        assert transport.in_flight == 0

    run_in_virtual_time(main)
    return result


def failing(status: int, said: str = "no", **headers: str) -> WireAnswer:
    return WireAnswer(((0, json.dumps({"error": {"message": said}}).encode()),), status, headers)


def stream(*parts: bytes, cut: bool = False) -> WireAnswer:
    return WireAnswer(tuple((10 * MS, part) for part in parts), cut="closed" if cut else None)
