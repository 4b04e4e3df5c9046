"""Finds the token that a server names by its text alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

_WORD_START = "\u2581"
"""How SentencePiece vocabularies write the space before a word; decoding one token alone would drop it."""
_UNDECODABLE = "\ufffd"


class VocabularyTokenizer(Protocol):
    """The part of a transformers fast tokenizer that is used here."""

    def decode(self, token_ids: Sequence[int]) -> str: ...

    def get_vocab(self) -> dict[str, int]: ...


class TokenTexts:
    """Texts that stand for exactly one token of a vocabulary.

    Several tokens may share a text (parts of one character all show as U+FFFD): such a text names none of them, and
    what a server lists under it belongs to the rest.
    """

    def __init__(self, tokenizer: VocabularyTokenizer | None) -> None:
        self._tokenizer = tokenizer

    def token_id(self, text: str) -> int | None:
        return self._ids.get(text)

    @cached_property
    def _ids(self) -> Mapping[str, int]:
        """Made on first use: it decodes the whole vocabulary."""
        found: dict[str, int] = {}
        shared: set[str] = set()
        for piece, token_id in self._tokenizer.get_vocab().items() if self._tokenizer else ():
            text = self._text(piece, token_id)
            if text in found or _UNDECODABLE in text or not text:
                shared.add(text)
            found[text] = token_id
        return {text: token_id for text, token_id in found.items() if text not in shared}

    def _text(self, piece: str, token_id: int) -> str:
        if _WORD_START in piece:
            return piece.replace(_WORD_START, " ")
        return self._tokenizer.decode([token_id]) if self._tokenizer else ""
