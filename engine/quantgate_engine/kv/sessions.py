"""Blocks that a session keeps between its turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quantgate_engine.kv.block_pool import BlockPool
from quantgate_engine.kv.settings import CacheSettings


@dataclass(frozen=True, slots=True)
class KeptSession:
    """The blocks of a session's last turn, since when it holds them, and until when."""

    blocks: tuple[int, ...]
    since_ns: int
    expires_ns: int


def holder_of(session_id: str) -> str:
    """The name under which the pool knows a session, which no request can have."""
    return f"session\0{session_id}"


class SessionKeeper:
    """Holds the prefix blocks of each session's last turn, within the limits of time and blocks.

    Sessions stand in the order of their last turn, so the first is the one that has waited longest.
    """

    def __init__(self, pool: BlockPool, settings: CacheSettings) -> None:
        self._pool = pool
        self._lifetime_ns = round(settings.session_seconds * 1e9)
        self._max_blocks = settings.session_blocks
        self._sessions: dict[str, KeptSession] = {}
        self._num_blocks = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def num_blocks(self) -> int:
        """Blocks of all sessions, shared ones counted in each."""
        return self._num_blocks

    @property
    def holdings(self) -> Mapping[str, Sequence[int]]:
        """Blocks by holder, as the pool knows it."""
        return {holder_of(session_id): kept.blocks for session_id, kept in self._sessions.items()}

    @property
    def kept(self) -> Mapping[str, KeptSession]:
        """What each session holds."""
        return self._sessions

    def keep(self, session_id: str, blocks: Sequence[int], now_ns: int) -> None:
        """Holds a turn's blocks for the next one, in place of what the session held before.

        Call it while the request still holds them. A prefix longer than the limit is held as far as the limit goes.
        """
        if not self._lifetime_ns:
            return
        kept = tuple(blocks[: self._max_blocks])
        holder = holder_of(session_id)
        self.drop(session_id)
        for block in kept:
            self._pool.share(holder, block)
        self._sessions[session_id] = KeptSession(kept, now_ns, now_ns + self._lifetime_ns)
        self._num_blocks += len(kept)
        while self._num_blocks > self._max_blocks:
            self.drop_oldest()

    def expire(self, now_ns: int) -> None:
        """Lets go of the sessions whose time is over."""
        while self._sessions and next(iter(self._sessions.values())).expires_ns <= now_ns:
            self.drop_oldest()

    def drop_oldest(self) -> None:
        self.drop(next(iter(self._sessions)))

    def drop(self, session_id: str) -> None:
        """Lets go of one session, if it is here; its blocks stay cached until somebody needs them."""
        kept = self._sessions.pop(session_id, None)
        if kept is not None:
            self._num_blocks -= len(kept.blocks)
            self._pool.give_back(holder_of(session_id), reversed(kept.blocks))
