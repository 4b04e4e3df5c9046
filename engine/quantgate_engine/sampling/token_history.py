"""Which tokens a request holds so far. Plain Python: the scheduler hands it on with every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quantgate_engine.executor.base import SampledToken


class KnownTokens(Protocol):
    """A prompt and the output that grows behind it: a request."""

    prompt_token_ids: tuple[int, ...]
    output: list[SampledToken]


class TokenHistory:
    """The tokens of one request, each counted once however many steps ask.

    It looks at the request only when it is asked, and then at what has come since: before the first token is drawn, the
    prompt may still be shortened.
    """

    __slots__ = ("_drawn", "_num_read", "_present", "_source")

    def __init__(self, source: KnownTokens) -> None:
        self._source = source
        self._present: set[int] | None = None
        self._drawn: Counter[int] = Counter()
        self._num_read = 0

    def drawn(self) -> Mapping[int, int]:
        """How often each token of the output was drawn."""
        self._catch_up()
        return self._drawn

    def present(self) -> AbstractSet[int]:
        """The distinct tokens of prompt and output."""
        return self._catch_up()

    def _catch_up(self) -> set[int]:
        if self._present is None:
            self._present = set(self._source.prompt_token_ids)
        for token in self._source.output[self._num_read :]:
            self._present.add(token.token_id)
            self._drawn[token.token_id] += 1
        self._num_read = len(self._source.output)
        return self._present
