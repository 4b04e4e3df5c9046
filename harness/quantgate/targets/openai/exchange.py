"""Reads one answer from its connection to its end, whatever that end is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cached_property

from quantgate.targets.base import RequestEnd, TokenEvent
from quantgate.targets.openai.answer_reader import AnswerReader, ServerReportedError
from quantgate.targets.openai.endpoint import Endpoint
from quantgate.targets.openai.errors import (
    EndpointError,
    broken_connection,
    empty_answer,
    no_stream,
    reported_in_stream,
    unreadable_event,
)
from quantgate.targets.openai.finish_reasons import ABORTS, finish_word
from quantgate.targets.openai.piece import MalformedEventError, Usage
from quantgate.targets.openai.request_body import RequestBody
from quantgate.targets.openai.transport import Answer, Received, TransportError
from quantgate.targets.transfer import TokenCounting, Transfer
from quantgate.workload.tokenizer import Tokenizer
from quantgate_engine.clock import Clock

# How long to wait, after [DONE], for the connection to come to its end, so that it can be used again; and how long,
# after the reason why the answer stopped, for its usage or [DONE], and after a usage for what may follow it.
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
        self._limit = body.output_limit
        self._reader = AnswerReader(body.dialect)
        self._attempts = attempts
        self._clock = clock
        self._tokenizer = tokenizer
        self._overhead_ns: int | None = None
        self._patience_ends_s: float | None = None
        self._usage_when_renewed: Usage | None = None
        self.failure: EndpointError | None = None

    async def read(self, answer: Answer) -> AsyncGenerator[TokenEvent, None]:
        """The token events; afterwards `failure` says what went wrong, if anything did."""
        try:
            async with aclosing(self._events(answer)) as events:
                async for event in events:
                    yield event
            self.failure = self._failure_at_end()
        except TransportError as error:
            self.failure = self._failure_at_end() if self._came_to_its_end() else broken_connection(self._url, error)
        except MalformedEventError as error:
            self.failure = unreadable_event(self._url, str(error))
        except ServerReportedError as error:
            self.failure = reported_in_stream(self._url, self._endpoint.without_key(str(error)))

    def end_event(self) -> TokenEvent:
        reader, failure = self._reader, self.failure
        transfer = self._transfer()
        if failure is not None:
            return TokenEvent(end=RequestEnd("failed", abort_cause="error", error=str(failure)), transfer=transfer)
        end = RequestEnd(
            "finished",
            finish_reason=finish_word(reader.finish_reason),
            cached_prompt_tokens=reader.usage.cached_prompt_tokens or 0,
            degraded=reader.degraded,
        )
        return TokenEvent(end=end, transfer=transfer)

    def _transfer(self) -> Transfer:
        per_event, token_ids, counted_by = self._counted
        return Transfer(
            attempts=self._attempts,
            http_status=200,
            error_kind=None if self.failure is None else self.failure.kind,
            prompt_tokens=self._reader.usage.prompt_tokens,
            cached_prompt_tokens=self._reader.usage.cached_prompt_tokens,
            completion_tokens=self._reader.usage.completion_tokens,
            token_ids=token_ids,
            tokens_per_event=per_event,
            counted_by=counted_by,
            overhead_ns=self._overhead_ns,
        )

    @cached_property
    def _counted(self) -> tuple[tuple[int, ...], tuple[int, ...], TokenCounting]:
        """Asked for only when the stream has ended, in whatever way."""
        return self._reader.count(self._tokenizer, self._limit)

    def _came_to_its_end(self) -> bool:
        """Whether the answer was there before its connection broke: how that ends does not spoil a whole answer.

        That the limit was reached is believed of a connection that broke only if the tokens bear it out.
        """
        if self._reader.done:
            return True
        if finish_word(self._reader.finish_reason) == "length" and self._limit is not None:
            return sum(self._counted[0]) >= self._limit
        return self._reader.is_whole

    def _failure_at_end(self) -> EndpointError | None:
        """What is wrong with a stream that ended without a fault of its connection."""
        reader = self._reader
        if not reader.is_whole:
            if reader.other_form is not None:
                return no_stream(self._url, reader.other_form)
            return broken_connection(self._url, TransportError("closed"))
        if (reader.finish_reason or "").lower() in ABORTS:
            return reported_in_stream(self._url, "it gave the request up")
        if self._limit != 0 and not any(self._counted[0]):
            return empty_answer(self._url, self._limit)
        return None

    async def _events(self, answer: Answer) -> AsyncGenerator[TokenEvent, None]:
        async with aclosing(answer.body()) as body:
            while not self._reader.done and (received := await self._next(body)) is not None:
                for event in self._reader.feed(received.data):
                    self._note_overhead(received.arrived_ns)
                    yield event
            for event in self._reader.end():
                yield event
            if self._reader.done:
                await _run_out(body)

    async def _next(self, body: AsyncGenerator[Received, None]) -> Received | None:
        """None where nothing more comes: the body ended, or nothing but keep-alives came after the answer's end."""
        if not self._reader.is_whole:
            return await anext(body, None)
        if self._patience_ends_s is None or self._reader.usage is not self._usage_when_renewed:
            self._patience_ends_s = asyncio.get_running_loop().time() + _PATIENCE_AFTER_END_S
            self._usage_when_renewed = self._reader.usage
        try:
            async with asyncio.timeout_at(self._patience_ends_s):
                return await anext(body, None)
        except TimeoutError:
            return None

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
