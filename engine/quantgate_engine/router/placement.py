"""The book of who is where: live requests, and the sessions that must find their blocks again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.router.pool import Pool


class Placement:
    """Requests enter on the thread that submits and leave on the one that steps, so the book has a lock."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = tuple(pools)
        self._lock = threading.Lock()
        self._pool_of: dict[str, Pool] = {}
        self._live: Counter[str] = Counter()
        self._latest_turn: dict[str, str] = {}

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._pool_of

    @property
    def is_empty(self) -> bool:
        """Whether the book has nobody in it, nor anything about somebody who was."""
        return not self._pool_of and not self._latest_turn and not any(self._live.values())

    def live(self, pool: Pool) -> int:
        """Requests of the pool that have not ended."""
        return self._live[pool.name]

    def pool_of(self, request_id: str | None) -> Pool | None:
        """Where a live request is; None where it has ended or never was."""
        return self._pool_of.get(request_id) if request_id is not None else None

    def enter(self, request_id: str, pool: Pool, terms: RequestTerms) -> None:
        with self._lock:
            self._pool_of[request_id] = pool
            self._live[pool.name] += 1
            if terms.session_id is not None:
                self._latest_turn[terms.session_id] = request_id

    def leave(self, request_id: str, terms: RequestTerms) -> None:
        """Does nothing where it is not in the book, as a request that was given to a pool past the router."""
        with self._lock:
            pool = self._pool_of.pop(request_id, None)
            if pool is not None:
                self._live[pool.name] -= 1
            if terms.session_id is not None and self._latest_turn.get(terms.session_id) == request_id:
                del self._latest_turn[terms.session_id]

    def keep_only_live(self) -> None:
        """Drops those that their pools know no more."""
        with self._lock:
            self._pool_of = {name: pool for name, pool in self._pool_of.items() if pool.core.is_live(name)}
            self._live = Counter(pool.name for pool in self._pool_of.values())
            self._latest_turn = {session: name for session, name in self._latest_turn.items() if name in self._pool_of}

    def clear(self) -> None:
        """Nobody is anywhere: every pool has begun anew."""
        with self._lock:
            self._pool_of.clear()
            self._live.clear()
            self._latest_turn.clear()

    def home_of(self, terms: RequestTerms) -> Pool | None:
        """The pool that holds blocks which the request can go on with; None where no pool does.

        That of the request that it forks; else that of its session's last turn, while the turn is live or its blocks
        are kept.
        """
        parent = self.pool_of(terms.fork_of)
        if parent is not None or terms.session_id is None:
            return parent
        return self.pool_of(self._latest_turn.get(terms.session_id)) or self._keeper_of(terms.session_id)

    def _keeper_of(self, session_id: str) -> Pool | None:
        """Where the blocks of the session's last turn are kept: of several pools, the one that has them since last."""
        kept = [
            (since_ns, pool) for pool in self._pools if (since_ns := pool.core.session_since_ns(session_id)) is not None
        ]
        return max(kept, key=lambda entry: entry[0])[1] if kept else None
