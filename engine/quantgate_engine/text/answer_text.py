"""The text of one answer as its tokens come."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate_engine.text.detokenizer import IncrementalDetokenizer, TokenDecoder
from quantgate_engine.text.stop_strings import StopStrings


class AnswerText:
    """Detokenizes and looks for stop strings.

    `stopped` turns true with the token that completes one. `num_decoded` counts the characters decoded so far, those
    that a stop string keeps back or cuts off included.
    """

    def __init__(self, decoder: TokenDecoder, stop: Sequence[str] = ()) -> None:
        self._detokenizer = IncrementalDetokenizer(decoder)
        self._stop_strings = StopStrings(stop)
        self.num_decoded = 0

    @property
    def stopped(self) -> bool:
        return self._stop_strings.stopped

    def push(self, token_id: int) -> str:
        """The text that can be shown now and could not before."""
        return self._pass_on(self._detokenizer.push(token_id))

    def end(self) -> str:
        """The rest of the text, when no token follows."""
        return self._pass_on(self._detokenizer.flush()) + self._stop_strings.flush()

    def _pass_on(self, text: str) -> str:
        self.num_decoded += len(text)
        return self._stop_strings.push(text)
