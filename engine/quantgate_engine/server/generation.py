"""From choices to pieces of text, as the engine draws them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from quantgate_engine.errors import RunError
from quantgate_engine.executor.base import SampledToken
from quantgate_engine.outputs import StreamChunk
from quantgate_engine.request import AbortCause
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.server.api_error import unavailable
from quantgate_engine.server.choices import Choice
from quantgate_engine.server.endings import failure_of
from quantgate_engine.server.merge import merged
from quantgate_engine.server.service import Service
from quantgate_engine.text.answer_text import AnswerText


@dataclass(frozen=True, slots=True)
class Piece:
    """What one step brought to a choice.

    text: what can be shown of it now; empty while a character or the beginning of a stop string is open.
    logprobs: one entry per token where asked for; offsets: for each of them, the characters decoded before it.
    """

    index: int
    text: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[SampledToken, ...] = ()
    offsets: tuple[int, ...] = ()
    finish_reason: str | None = None


@dataclass(slots=True)
class Answer:
    """A choice as far as its pieces have come."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[SampledToken] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    finish_reason: str | None = None

    def add(self, piece: Piece) -> None:
        self.text += piece.text
        self.token_ids.extend(piece.token_ids)
        self.logprobs.extend(piece.logprobs)
        self.offsets.extend(piece.offsets)
        self.finish_reason = piece.finish_reason


def generate_all(service: Service, choices: Sequence[Choice]) -> AsyncGenerator[Piece, None]:
    """The pieces of all choices as they come. Raises ApiError where one of them does not come to its end."""
    return merged([generate(service, choice) for choice in choices])


async def generate(service: Service, choice: Choice, offset: int = 0) -> AsyncGenerator[Piece, None]:
    """The pieces of one choice; the last has its finish_reason. offset: characters that stand before the answer.

    Closing the generator early gives the request up as a disconnect. Raises ApiError where it does not come to its end.
    """
    if choice.params is None:
        yield Piece(choice.index, finish_reason="length")
        return
    engine, loop = service.engine, asyncio.get_running_loop()
    # The engine ends the stream: wherever the request stands then, waiting too, its reader learns the reason.
    limit = loop.call_later(service.settings.request_timeout_s, engine.abort, choice.request_id, AbortCause.TIMEOUT)
    reading = _Reading(service, choice, choice.params, offset)
    try:
        async with aclosing(engine.stream(choice.request_id, choice.prompt_token_ids, choice.params)) as chunks:
            async for chunk in chunks:
                piece = reading.take(chunk)
                if piece is not None:
                    yield piece
    except RunError as stopped:
        raise unavailable(str(stopped), "engine_stopped") from stopped
    finally:
        limit.cancel()


class _Reading:
    """Turns the engine's chunks into pieces, and ends the request where a stop string has come."""

    def __init__(self, service: Service, choice: Choice, params: SamplingParams, offset: int) -> None:
        self._service = service
        self._choice = choice
        self._answer = AnswerText(service.tokenizer, params.stop)
        self._offset = offset
        self._num_tokens = 0
        self._finished = False

    def take(self, chunk: StreamChunk) -> Piece | None:
        """None where the answer was at its end before: what the engine drew meanwhile is nobody's."""
        piece = None if self._finished else self._read(chunk)
        if chunk.end is not None:
            self._service.metrics.count_end(chunk.end, len(self._choice.prompt_token_ids), self._num_tokens)
        return piece

    def _read(self, chunk: StreamChunk) -> Piece:
        end, answer = chunk.end, self._answer
        if end is not None and end.status != "finished":
            raise failure_of(end)
        text, offsets = "", []
        # The token that stops an answer is no part of its text.
        silent = len(chunk.token_ids) - 1 if end is not None and end.finish_reason == "stop" else None
        for number, token_id in enumerate(chunk.token_ids):
            offsets.append(self._offset + answer.num_decoded)
            if number != silent:
                text += answer.push(token_id)
        self._num_tokens += len(chunk.token_ids)
        finish_reason = end.finish_reason if end is not None else None
        if end is not None and not answer.stopped:
            text += answer.end()
        if answer.stopped:
            finish_reason, self._finished = "stop", True
            if end is None:
                self._service.engine.finish(self._choice.request_id)
        return Piece(
            index=self._choice.index,
            text=text,
            token_ids=chunk.token_ids,
            logprobs=chunk.logprobs,
            offsets=tuple(offsets) if chunk.logprobs else (),
            finish_reason=finish_reason,
        )
