"""Which tokens a request holds so far. Plain Python: the scheduler hands it on with every step."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class DrawnToken(Protocol):
    @property
    def token_id(self) -> int: ...


class KnownTokens(Protocol):
    """A prompt and the output that grows behind it: a request."""

    @property
    def prompt_token_ids(self) -> tuple[int, ...]: ...

    @property
    def output(self) -> Sequence[DrawnToken]: ...


class DrawnTokens(NamedTuple):
    """The distinct tokens of an output, and how often each was drawn."""

    token_ids: array[int]
    counts: array[int]


class TokenHistory:
    """The tokens of one request, each counted once however many steps ask.

    It looks at the request only when it is asked, and then at what has come since: before the first token is drawn, the
    prompt may still be shortened. Arrays of 64-bit integers, because numpy copies them whole: to convert a list of
    2,000 tokens in each step takes hundreds of times as long.
    """

    __slots__ = ("_drawn", "_num_read", "_places", "_present", "_seen", "_source")

    def __init__(self, source: KnownTokens) -> None:
        self._source = source
        self._seen: set[int] | None = None
        self._present = array("q")
        self._drawn = DrawnTokens(array("q"), array("q"))
        self._places: dict[int, int] = {}
        self._num_read = 0

    def present(self) -> array[int]:
        """The distinct tokens of prompt and output."""
        self._catch_up()
        return self._present

    def drawn(self) -> DrawnTokens:
        self._catch_up()
        return self._drawn

    def _catch_up(self) -> None:
        if self._seen is None:
            self._seen = set(self._source.prompt_token_ids)
            self._present.extend(self._seen)
        for token in self._source.output[self._num_read :]:
            if token.token_id not in self._seen:
                self._seen.add(token.token_id)
                self._present.append(token.token_id)
            self._count(token.token_id)
        self._num_read = len(self._source.output)

    def _count(self, token_id: int) -> None:
        place = self._places.setdefault(token_id, len(self._places))
        if place == len(self._drawn.counts):
            self._drawn.token_ids.append(token_id)
            self._drawn.counts.append(0)
        self._drawn.counts[place] += 1
