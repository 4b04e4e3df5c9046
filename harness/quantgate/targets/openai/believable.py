"""Which totals of a server are believed: those that neither the request nor the stream itself contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event that carried tokens, or the one that ended the answer (`is_stop`): an end token has no text."""

    text: str = ""
    token_ids: tuple[int, ...] | None = None
    logprob_tokens: int | None = None
    is_stop: bool = False

    @property
    def is_end_token(self) -> bool:
        return self.is_stop and not self.text


def believed_total(total: int | None, chunks: Sequence[Chunk], limit: int | None) -> int | None:
    """The server's total; None where it gives none, or one that cannot be.

    At most `limit`, what was asked for. Where nobody knows that, the text bounds it: every token of a text has a byte
    of it, and every chunk may hold one token that does not show. At least as many as it takes to give the first and
    the last text that came a time of its own; a total below that would erase times that were seen.
    """
    if total is None:
        return None
    shown = sum(not chunk.is_stop for chunk in chunks)
    most = limit if limit is not None else sum(len(chunk.text.encode()) + 1 for chunk in chunks)
    return total if min(2, shown) <= total <= most else None
