"""Stop strings in a stream of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from quantgate_engine.outputs import StreamChunk
from quantgate_engine.text.answer_text import AnswerText
from quantgate_engine.text.detokenizer import TokenDecoder


class StreamStop:
    """Reads the text of one stream; `finish` is called when a stop string has come and the request still runs."""

    def __init__(self, decoder: TokenDecoder, stop: Sequence[str], finish: Callable[[], None]) -> None:
        self._answer = AnswerText(decoder, stop)
        self._finish = finish

    def read(self, chunk: StreamChunk) -> StreamChunk | None:
        """The chunk as its reader gets it; None for what was drawn before the engine knew that the answer is over."""
        end = chunk.end
        if self._answer.stopped:
            chunk = StreamChunk(end=end)
        else:
            # The token that ends a request by itself is no part of its text.
            silent = end is not None and end.finish_reason == "stop"
            for token_id in chunk.token_ids[: -1 if silent else None]:
                self._answer.push(token_id)
            if end is not None and not self._answer.stopped:
                # The bytes of half a character count as text when no others follow.
                self._answer.end()
            if not self._answer.stopped:
                return chunk
            if end is None:
                self._finish()
                return chunk
        if end is None:
            return None
        return replace(chunk, end=replace(end, finish_reason="stop")) if end.status == "finished" else chunk
