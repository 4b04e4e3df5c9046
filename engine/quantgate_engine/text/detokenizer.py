"""Text of a stream of tokens, never with half a character in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

UNDECIDED = "\N{REPLACEMENT CHARACTER}"
"""What decoders write for bytes that are no character: at the end of a text, perhaps only not yet."""

# A character has four bytes at most, and so four tokens. What is still undecided after many more is not text.
_LONGEST_WINDOW = 64


class TokenDecoder(Protocol):
    """The part of a transformers tokenizer that turns tokens into text."""

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = ...) -> str: ...


class IncrementalDetokenizer:
    """Decodes token by token; the pieces together are the text of all tokens, special ones left out.

    A window of tokens is decoded again at each step, because how a token is written can depend on those before it
    (spaces between words, characters that are spread over tokens). What ends in U+FFFD waits for the next token, which
    may complete the character.
    """

    def __init__(self, decoder: TokenDecoder) -> None:
        self._decoder = decoder
        self._window: list[int] = []
        self._num_context = 0
        self._num_shown = 0

    def push(self, token_id: int) -> str:
        """The text that is certain now and was not before; empty while a character is open."""
        self._window.append(token_id)
        text = self._decode(self._window)
        certain = len(text.rstrip(UNDECIDED))
        if len(self._window) - self._num_context > _LONGEST_WINDOW:
            return self._flush(text)
        piece = text[self._num_shown : certain]
        self._num_shown = max(self._num_shown, certain)
        if piece and certain == len(text):
            self._begin_window()
        return piece

    def flush(self) -> str:
        """The rest, when no token follows: bytes that are no character are written as U+FFFD."""
        return self._flush(self._decode(self._window))

    def _flush(self, text: str) -> str:
        piece = text[self._num_shown :]
        self._window, self._num_context, self._num_shown = [], 0, 0
        return piece

    def _begin_window(self) -> None:
        """The text ends at a character's end: of the window, only the newest tokens are still needed, as context."""
        self._window = self._window[self._num_context :]
        self._num_context = len(self._window)
        self._num_shown = len(self._decode(self._window))

    def _decode(self, token_ids: list[int]) -> str:
        return self._decoder.decode(token_ids, skip_special_tokens=True)
