"""Each token by itself: its bytes and how OpenAI's interface writes it."""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_SINGLE_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"


class TokenPieces:
    """Reads a tokenizer's vocabulary entries: byte-level ones, those with byte fall-back, and plain words."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer = tokenizer
        self._added = frozenset(tokenizer.added_tokens_decoder)
        decoder = tokenizer.backend_tokenizer.decoder
        self._byte_level = decoder is not None and "ByteLevel" in str(decoder.__getstate__())

    def bytes_of(self, token_id: int) -> bytes:
        """The bytes that the token stands for; half a character is half a character here."""
        piece: str | None = self._tokenizer.convert_ids_to_tokens(token_id)
        if piece is None:  # Models round their vocabulary up; those ids have no text.
            return b""
        if token_id in self._added:
            return piece.encode()
        if self._byte_level:
            return bytes(byte_of_symbol()[symbol] for symbol in piece)
        single = _SINGLE_BYTE.fullmatch(piece)
        return bytes([int(single[1], 16)]) if single else piece.replace(_WORD_START, " ").encode()

    @cached_property
    def longest_bytes(self) -> int:
        """Bytes of the longest token, at least 1; the first look reads the whole vocabulary."""
        return max(1, *(len(self.bytes_of(token_id)) for token_id in range(len(self._tokenizer))))

    def text_of(self, token_id: int) -> str:
        """The token's text; `bytes:` and escapes where its bytes are no text by themselves, as OpenAI writes them."""
        content = self.bytes_of(token_id)
        try:
            return content.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)


@cache
def byte_of_symbol() -> dict[str, int]:
    """The byte that each symbol of a byte-level vocabulary stands for (GPT-2, Radford et al. 2019).

    Printable bytes stand for themselves; the others, in order, are the characters from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}
