"""From choices to pieces of text, as the engine draws them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from quantgate_engine.errors import RunError
from quantgate_engine.executor.base import SampledToken
from quantgate_engine.outputs import StreamChunk, StreamEnd
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.server.api_error import unavailable
from quantgate_engine.server.choices import Choice
from quantgate_engine.server.endings import failure_of
from quantgate_engine.server.service import Service
from quantgate_engine.server.usage import Usage
from quantgate_engine.text.answer_text import AnswerText


@dataclass(frozen=True, slots=True)
class Piece:
    """What one step brought to a choice.

    text: what can be shown of it now; empty while a character or the beginning of a stop string is open.
    logprobs: one entry per token where asked for; offsets: for each of them, the characters decoded before it.
    degraded: beside the end, what was cut from the request so that it could run.
    """

    index: int
    text: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[SampledToken, ...] = ()
    offsets: tuple[int, ...] = ()
    finish_reason: str | None = None
    degraded: str | None = None


@dataclass(slots=True)
class Answer:
    """A choice as far as its pieces have come."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[SampledToken] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    degraded: str | None = None

    def add(self, piece: Piece) -> None:
        self.text += piece.text
        self.token_ids.extend(piece.token_ids)
        self.logprobs.extend(piece.logprobs)
        self.offsets.extend(piece.offsets)
        self.finish_reason = piece.finish_reason
        self.degraded = piece.degraded


async def generate(service: Service, choice: Choice, usage: Usage, offset: int = 0) -> AsyncGenerator[Piece, None]:
    """The pieces of one choice; the last has its finish_reason.

    usage: counts its tokens, to the end of the generator. offset: characters that stand before the answer.

    Closing the generator early gives the request up as a disconnect. Raises ApiError where it does not come to its end.
    """
    if choice.params is None:
        yield Piece(choice.index, finish_reason="length")
        return
    reading = _Reading(service, choice, choice.params, usage, offset)
    # Stop strings are looked for here, where the text is made anyway.
    params = replace(choice.params, stop=())
    stream = service.engine.stream(choice.request_id, choice.prompt_token_ids, params, choice.terms)
    try:
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                piece = reading.take(chunk)
                if piece is not None:
                    yield piece
    except RunError as stopped:
        raise unavailable(str(stopped), "engine_stopped") from stopped


class _Reading:
    """Turns the engine's chunks into pieces, and ends the request where a stop string has come."""

    def __init__(self, service: Service, choice: Choice, params: SamplingParams, usage: Usage, offset: int) -> None:
        self._service = service
        self._choice = choice
        self._answer = AnswerText(service.tokenizer, params.stop)
        self._usage = usage
        self._offset = offset
        self._num_tokens = 0
        self._finished = False

    def take(self, chunk: StreamChunk) -> Piece | None:
        """None where the answer was at its end before: what the engine drew meanwhile is nobody's."""
        try:
            return None if self._finished else self._read(chunk)
        finally:
            if chunk.end is not None:
                self._count(chunk.end)

    def _count(self, end: StreamEnd) -> None:
        given = len(self._choice.prompt_token_ids)
        prompt_tokens = given if end.prompt_tokens is None else end.prompt_tokens
        self._service.metrics.count_end(end, prompt_tokens, self._num_tokens)
        # A fork finds the whole prompt with the first choice of that prompt; what counts is what that one found.
        if self._choice.terms.fork_of is None:
            self._usage.cached_tokens += end.cached_prompt_tokens
            self._usage.prompt_tokens -= given - prompt_tokens

    def _read(self, chunk: StreamChunk) -> Piece:
        end, answer = chunk.end, self._answer
        if end is not None and end.status != "finished":
            limit_s = self._choice.terms.timeout_s
            is_own = limit_s is not None and limit_s < self._service.settings.request_timeout_s
            raise failure_of(end, limit_s if is_own else None)
        text, offsets = "", []
        # The token that stops an answer is no part of its text.
        silent = len(chunk.token_ids) - 1 if end is not None and end.finish_reason == "stop" else None
        for number, token_id in enumerate(chunk.token_ids):
            offsets.append(self._offset + answer.num_decoded)
            if number != silent:
                text += answer.push(token_id)
        self._num_tokens += len(chunk.token_ids)
        self._usage.output_tokens += len(chunk.token_ids)
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
            degraded=end.degraded if end is not None else None,
        )
