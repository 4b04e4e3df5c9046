"""Turns the bytes of a streamed answer into token events, and remembers what only the whole answer tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quantgate.json_text import parse_json
from quantgate.targets.base import TokenEvent
from quantgate.targets.openai.api.dialect import Dialect
from quantgate.targets.openai.believable import Chunk
from quantgate.targets.openai.errors import message_of, one_line
from quantgate.targets.openai.finish_reasons import ENDS_BY_TOKEN
from quantgate.targets.openai.piece import MalformedEventError, StreamPiece, Usage, usage_in
from quantgate.targets.openai.sse import OversizedEventError, SseDecoder, SseEvent
from quantgate.targets.openai.surrogates import SurrogateJoiner
from quantgate.targets.openai.token_counting import count_tokens
from quantgate.targets.transfer import TokenCounting
from quantgate.workload.tokenizer import Tokenizer

_DONE = "[DONE]"
_OTHER_FORMS = {b"{": "one whole JSON document", b"[": "one whole JSON document", b"<": "a web page"}
"""By the first character of an answer that holds no event: lines of an event stream begin with a field's name."""


class ServerReportedError(Exception):
    """The server said inside the stream that it failed; the message is what it said, in one line."""


class AnswerReader:
    """Reads one answer. `feed` it the bytes as they come, then `end` it; each gives the events that became whole.

    Both raise MalformedEventError and ServerReportedError. Events that hold no token (the role, keep-alives, usage,
    other choices) give no token event, so that the first one given is the first token.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._decoder = SseDecoder()
        self._answer = SurrogateJoiner()
        self._reasoning = SurrogateJoiner()
        self._chunks: list[Chunk] = []
        self._events_of_chunk: list[int] = []
        self._events_seen = 0
        self._opening = b""
        self.done = False
        self.finish_reason: str | None = None
        self.degraded: str | None = None
        self.usage = Usage()

    @property
    def is_whole(self) -> bool:
        """Whether the answer came to its end: the server said [DONE] or why it stopped."""
        return self.done or self.finish_reason is not None

    @property
    def other_form(self) -> str | None:
        """What came in place of an event stream, in a few words; None where it was one, or nothing, or unknown."""
        return None if self._events_seen else _OTHER_FORMS.get(self._opening)

    def feed(self, data: bytes) -> Iterator[TokenEvent]:
        self._opening = self._opening or data.lstrip()[:1]
        try:
            events = self._decoder.feed(data)
        except OversizedEventError as error:
            raise MalformedEventError(str(error)) from None
        for event in events:
            yield from self._take(event)

    def end(self) -> Iterator[TokenEvent]:
        """The stream's last event where its closing blank line is missing; half an event is no event."""
        for event in self._decoder.end():
            if self.is_whole or _is_document(event):
                yield from self._take(event)
        for joiner, reasoning in ((self._reasoning, True), (self._answer, False)):
            rest = joiner.end()
            if rest:
                # Its token was counted with the half that came.
                yield self._note(Chunk(rest, (), 0, is_stop=True), TokenEvent(text=rest, reasoning=reasoning))

    def count(
        self, tokenizer: Tokenizer | None, limit: int | None = None
    ) -> tuple[tuple[int, ...], tuple[int, ...], TokenCounting]:
        """Tokens of each event that was given, the answer's token ids, and where the counts come from.

        limit: the most tokens that were asked for; counts of the server beyond it are not believed. An event in which
        reasoning turned into the answer was given as two: its tokens count with the first.
        """
        counted = count_tokens(self._chunks, self.usage.completion_tokens, tokenizer, limit)
        per_event = [
            count if index == 0 else 0
            for count, events in zip(counted.per_chunk, self._events_of_chunk, strict=True)
            for index in range(events)
        ]
        return tuple(per_event), counted.token_ids, counted.counted_by

    def _take(self, event: SseEvent) -> Iterator[TokenEvent]:
        self._events_seen += 1
        if self.done or not event.data.strip():
            return
        if event.data.strip() == _DONE:
            self.done = True
            return
        document = _parsed(event)
        if document.get("error") or document.get("object") == "error" or event.kind == "error":
            raise ServerReportedError(one_line(message_of(document)) or "no reason given")
        # Servers and proxies put notes of their own behind an answer.
        beside = bool(self._chunks) and document.get("choices") is None
        piece = StreamPiece(usage=usage_in(document)) if beside else self._dialect.read(document)
        self.usage = piece.usage or self.usage
        yield from self._token_events(piece)
        self.finish_reason = piece.finish_reason or self.finish_reason
        self.degraded = piece.degraded or self.degraded

    def _token_events(self, piece: StreamPiece) -> Iterator[TokenEvent]:
        is_stop = piece.finish_reason in ENDS_BY_TOKEN and not piece.has_tokens
        if not (piece.has_tokens or is_stop):
            return
        ids = piece.token_ids or ()
        reasoning = self._reasoning.push(piece.reasoning_text) if piece.reasoning_text else ""
        answer = self._answer.push(piece.text) if piece.text else ""
        chunk = Chunk(reasoning + answer, piece.token_ids, piece.logprob_tokens, is_stop)
        if not reasoning:
            # Also where there is no text: a character that is not whole yet, or an end token.
            yield self._note(chunk, TokenEvent(ids, text=answer))
            return
        yield self._note(chunk, TokenEvent(ids, text=reasoning, reasoning=True))
        if answer:
            self._events_of_chunk[-1] += 1
            yield TokenEvent(text=answer)

    def _note(self, chunk: Chunk, event: TokenEvent) -> TokenEvent:
        self._chunks.append(chunk)
        self._events_of_chunk.append(1)
        return event


def _parsed(event: SseEvent) -> dict[str, Any]:
    try:
        document = parse_json(event.data)
    except ValueError:
        raise MalformedEventError("it is no JSON") from None
    if not isinstance(document, dict):
        raise MalformedEventError("it is no JSON object")
    return document


def _is_document(event: SseEvent) -> bool:
    try:
        parse_json(event.data)
    except ValueError:
        return event.data.strip() == _DONE
    return True
