"""An OpenAI-compatible server as a target."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from quantgate.capabilities.capabilities import Capabilities
from quantgate.targets.base import ArmDescription, ArmRole, RequestEnd, TokenEvent
from quantgate.targets.openai.describe import describe
from quantgate.targets.openai.endpoint import Endpoint
from quantgate.targets.openai.errors import EndpointError
from quantgate.targets.openai.exchange import Exchange
from quantgate.targets.openai.liveness import Liveness
from quantgate.targets.openai.request_body import BodyBuilder
from quantgate.targets.openai.retries import may_pass, wait_before_retry_s
from quantgate.targets.openai.server_facts import ServerFacts, ask_server
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.targets.openai.transport import Transport
from quantgate.targets.transfer import Transfer
from quantgate.workload.plan import PlannedRequest
from quantgate.workload.tokenizer import Tokenizer
from quantgate_engine.clock import Clock
from quantgate_engine.step_record import StepRecord


class OpenAITarget:
    """Streams every answer over a connection of its own; closing the generator of `submit` closes the connection.

    tokenizer: that of the model, where it is known. capabilities: what the probe found; without them nothing is sent
    that only some servers take. scheme: the precision, for servers that do not tell it. transport: replaces TCP in
    tests.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        *,
        arm_id: str,
        role: ArmRole,
        clock: Clock,
        tokenizer: Tokenizer | None = None,
        capabilities: Capabilities | None = None,
        scheme: str | None = None,
        notes: tuple[str, ...] = (),
        transport: Transport | None = None,
    ) -> None:
        self._settings = settings
        self._arm_id = arm_id
        self._role = role
        self._clock = clock
        self._tokenizer = tokenizer
        self._capabilities = capabilities
        self._scheme = scheme
        self._notes = notes
        self._endpoint = Endpoint(settings, transport=transport, clock=clock)
        self._liveness = Liveness(self._endpoint)
        self._facts = ServerFacts(capabilities.model if capabilities is not None else settings.model or "unknown")
        self._bodies = self._body_builder()

    @property
    def description(self) -> ArmDescription:
        """As the server told at `start`."""
        return describe(
            self._facts,
            arm_id=self._arm_id,
            role=self._role,
            url=self._settings.url,
            scheme=self._scheme,
            capabilities=self._capabilities,
            notes=self._notes,
        )

    async def start(self) -> None:
        """Raises EndpointError where the server cannot be reached, refuses the key or has no such model."""
        await self._endpoint.open()
        self._facts = await ask_server(self._endpoint)
        self._bodies = self._body_builder()
        self._liveness.note_answer()

    async def stop(self) -> None:
        await self._liveness.close()
        await self._endpoint.close()

    async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
        body = self._bodies.build(request)
        reads_slowly = request.read_tokens_per_s is not None
        attempts = 0
        while True:
            attempts += 1
            try:
                answer = await self._endpoint.stream(body.dialect.path, body.fields, reads_slowly=reads_slowly)
                break
            except EndpointError as error:
                await self._liveness.examine(error)
                transfer = Transfer(attempts=attempts, http_status=error.status, error_kind=error.kind)
                if attempts > self._settings.max_retries or not may_pass(error):
                    yield TokenEvent(end=_unanswered(error), transfer=transfer)
                    return
                wait_s = wait_before_retry_s(error, attempts)
            # Told before the wait, so that a client that runs out of patience in it has the attempts on record.
            yield TokenEvent(transfer=transfer)
            await asyncio.sleep(wait_s)
        self._liveness.note_answer()
        try:
            yield TokenEvent(transfer=Transfer(attempts=attempts, http_status=answer.status))
            exchange = Exchange(self._endpoint, body, attempts, self._clock, self._tokenizer)
            async with aclosing(exchange.read(answer)) as events:
                async for event in events:
                    yield event
        finally:
            answer.close()
        if exchange.failure is not None:
            await self._liveness.examine(exchange.failure)
        yield exchange.end_event()

    def take_steps(self) -> list[StepRecord]:
        """None: a server's steps are its own; its metrics are scraped instead."""
        return []

    def decode_text(self, token_ids: list[int]) -> str:
        """Empty where no tokenizer is known."""
        return "" if self._tokenizer is None else self._tokenizer.decode(token_ids)

    def _body_builder(self) -> BodyBuilder:
        slo_classes = self._facts.build.slo_classes if self._facts.build is not None else ()
        return BodyBuilder(self._settings, self._facts.model, self._capabilities, self._tokenizer, slo_classes)


def _unanswered(error: EndpointError) -> RequestEnd:
    """A status below 500 is the server's decision about the request; the rest is its failure."""
    refused = error.status is not None and 400 <= error.status < 500
    return (
        RequestEnd("rejected", error=str(error))
        if refused
        else RequestEnd("failed", abort_cause="error", error=str(error))
    )
