"""A transport that serves scripted answers from memory, on the clock of the event loop (virtual or real)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from quantgate.targets.openai.transport import Received, TransportError
from quantgate.targets.openai.wire_script import WireAnswer
from quantgate_engine.clock import Clock


@dataclass(frozen=True, slots=True)
class SentRequest:
    """What a client sent, and how it reads. body: parsed; None for a GET."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Any
    reads_slowly: bool = False


class ScriptedTransport:
    """Serves at most `slots` requests at a time, first come first served, each as `script(request)` says.

    in_flight: answers that are neither at their end nor closed. disconnects: when the client closed one before its end.
    """

    def __init__(self, script: Callable[[SentRequest], WireAnswer], clock: Clock, *, slots: int = 1 << 20) -> None:
        self._script = script
        self.clock = clock
        self.slots = asyncio.Semaphore(slots)
        self.sent: list[SentRequest] = []
        self.in_flight = 0
        self.disconnects: list[int] = []

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, reads_slowly: bool = False
    ) -> ScriptedAnswer:
        request = SentRequest(method, url, dict(headers), None if body is None else json.loads(body), reads_slowly)
        self.sent.append(request)
        await self.slots.acquire()
        wire = self._script(request)
        if wire.refused is not None:
            self.slots.release()
            raise TransportError(wire.refused)
        self.in_flight += 1
        return ScriptedAnswer(wire, self)


class ScriptedAnswer:
    """See `transport.Answer`. Each part arrives its delay after the part before was due, however late it is read."""

    def __init__(self, wire: WireAnswer, transport: ScriptedTransport) -> None:
        self.status = wire.status
        self.headers: Mapping[str, str] = dict(wire.headers)
        self._wire = wire
        self._transport = transport
        self._due_ns = transport.clock.now_ns()
        self._over = False

    async def body(self) -> AsyncGenerator[Received, None]:
        clock = self._transport.clock
        for delay_ns, data in self._wire.parts:
            self._due_ns += delay_ns
            while (remaining_ns := self._due_ns - clock.now_ns()) > 0:
                await asyncio.sleep(remaining_ns / 1e9)
            yield Received(data, self._due_ns)
        self._end()
        if self._wire.cut is not None:
            raise TransportError(self._wire.cut)

    def close(self) -> None:
        if not self._over:
            self._transport.disconnects.append(self._transport.clock.now_ns())
            self._end()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._transport.in_flight -= 1
            self._transport.slots.release()
