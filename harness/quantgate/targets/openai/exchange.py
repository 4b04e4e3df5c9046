"""Reads one answer from its connection to its end, whatever that end is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from quantgate.targets.base import RequestEnd, TokenEvent
from quantgate.targets.openai.answer_reader import AnswerReader, ServerReportedError
from quantgate.targets.openai.endpoint import Endpoint
from quantgate.targets.openai.errors import EndpointError, broken_connection, no_stream, one_line
from quantgate.targets.openai.finish_reasons import ABORTS, FINISH_REASONS
from quantgate.targets.openai.piece import MalformedEventError
from quantgate.targets.openai.request_body import RequestBody
from quantgate.targets.openai.transport import Answer, Received, TransportError
from quantgate.targets.transfer import Transfer
from quantgate.workload.tokenizer import Tokenizer
from quantgate_engine.clock import Clock

# How long to wait, after [DONE], for the connection to come to its end, so that it can be used again.
_PATIENCE_AFTER_END_S = 1.0


class Exchange:
    """One answer that has begun: its status is 200.

    attempts: requests sent until then. The answer's tokens are counted when it has ended, also where it failed.
    """

    def __init__(
        self, endpoint: Endpoint, body: RequestBody, attempts: int, clock: Clock, tokenizer: Tokenizer | None
    ) -> None:
        self._endpoint = endpoint
        self._url = endpoint.url_of(body.dialect.path)
        self._reader = AnswerReader(body.dialect)
        self._attempts = attempts
        self._clock = clock
        self._tokenizer = tokenizer
        self._overhead_ns: int | None = None
        self.failure: EndpointError | None = None

    async def read(self, answer: Answer) -> AsyncGenerator[TokenEvent, None]:
        """The token events; afterwards `failure` says what went wrong, if anything did."""
        try:
            async with aclosing(self._events(answer)) as events:
                async for event in events:
                    yield event
            if not self._reader.is_whole:
                if self._reader.other_form is not None:
                    self.failure = no_stream(self._url, self._reader.other_form)
                    return
                raise TransportError("closed")
            if self._reader.finish_reason in ABORTS:
                raise ServerReportedError("it gave the request up")
        except TransportError as error:
            # An answer that was whole is not spoilt by how its connection ends.
            if not self._reader.is_whole:
                self.failure = broken_connection(self._url, error)
        except MalformedEventError as error:
            self.failure = EndpointError(
                f"{self._url}: an event of the stream cannot be read ({error}); check that the server is compatible.",
                "malformed_event",
                200,
            )
        except ServerReportedError as error:
            said = self._endpoint.without_key(str(error))
            self.failure = EndpointError(
                f"{self._url}: the server reported an error in its stream ({said}); look at its log.",
                "server_error",
                200,
            )

    def end_event(self) -> TokenEvent:
        reader, failure = self._reader, self.failure
        transfer = self._transfer()
        if failure is not None:
            return TokenEvent(end=RequestEnd("failed", abort_cause="error", error=str(failure)), transfer=transfer)
        reason = reader.finish_reason
        end = RequestEnd(
            "finished",
            finish_reason=None if reason is None else FINISH_REASONS.get(reason, one_line(reason)),
            cached_prompt_tokens=reader.usage.cached_prompt_tokens or 0,
        )
        return TokenEvent(end=end, transfer=transfer)

    def _transfer(self) -> Transfer:
        per_event, token_ids, counted_by = self._reader.count(self._tokenizer)
        return Transfer(
            attempts=self._attempts,
            http_status=200,
            error_kind=None if self.failure is None else self.failure.kind,
            prompt_tokens=self._reader.usage.prompt_tokens,
            completion_tokens=self._reader.usage.completion_tokens,
            token_ids=token_ids,
            tokens_per_event=per_event,
            counted_by=counted_by,
            overhead_ns=self._overhead_ns,
        )

    async def _events(self, answer: Answer) -> AsyncGenerator[TokenEvent, None]:
        async with aclosing(answer.body()) as body:
            async for received in body:
                for event in self._reader.feed(received.data):
                    self._note_overhead(received.arrived_ns)
                    yield event
                if self._reader.done:
                    await _run_out(body)
                    return
        for event in self._reader.end():
            yield event

    def _note_overhead(self, arrived_ns: int | None) -> None:
        if arrived_ns is not None:
            self._overhead_ns = max(self._overhead_ns or 0, self._clock.now_ns() - arrived_ns)


async def _run_out(body: AsyncGenerator[Received, None]) -> None:
    """Reads what follows the answer's end, normally nothing but the end of the connection's message."""
    try:
        async with asyncio.timeout(_PATIENCE_AFTER_END_S):
            async for _ in body:
                pass
    except (TimeoutError, TransportError):
        pass  # The answer is whole; the connection is given up instead of used again.
