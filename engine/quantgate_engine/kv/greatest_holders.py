"""Who took most of the KV cache in the whole life of an engine."""

from __future__ import annotations

import heapq
import itertools

from quantgate_engine.kv.holding import KVHolding


class GreatestHolders:
    """Keeps the `limit` stays with the most block-seconds of all that are told of; telling of one is O(log limit)."""

    def __init__(self, limit: int = 20) -> None:
        self._limit = limit
        self._numbers = itertools.count()
        # The number decides between equal costs, so that holdings themselves are never compared.
        self._stays: list[tuple[float, int, KVHolding]] = []

    def note(self, stay: KVHolding) -> None:
        """A holder has let go of all its blocks."""
        entry = (stay.block_seconds, next(self._numbers), stay)
        if len(self._stays) < self._limit:
            heapq.heappush(self._stays, entry)
        else:
            heapq.heappushpop(self._stays, entry)

    def listing(self) -> list[KVHolding]:
        """The stays, the costliest first."""
        return [stay for _, _, stay in sorted(self._stays, reverse=True)]
