"""Blocks that a session keeps between its turns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from quantgate_engine.kv.block_pool import BlockPool
from quantgate_engine.kv.holding import KVHolding
from quantgate_engine.kv.settings import CacheSettings


@dataclass(frozen=True, slots=True)
class KeptSession:
    """The blocks of a session's last turn and until when it holds them.

    `since_ns`: since when it has held any without a pause; `past_block_ns`: blocks x nanoseconds of its turns before.
    """

    blocks: tuple[int, ...]
    since_ns: int
    changed_ns: int
    expires_ns: int
    past_block_ns: int = 0

    def block_ns(self, now_ns: int) -> int:
        """Blocks x nanoseconds since it began to hold any."""
        return self.past_block_ns + len(self.blocks) * (now_ns - self.changed_ns)

    def holding(self, session_id: str, now_ns: int) -> KVHolding:
        held_seconds = (now_ns - self.since_ns) / 1e9
        return KVHolding(session_id, "session", len(self.blocks), held_seconds, self.block_ns(now_ns) / 1e9)


def holder_of(session_id: str) -> str:
    """The name under which the pool knows a session, which no request can have."""
    return f"session\0{session_id}"


class SessionKeeper:
    """Holds the prefix blocks of each session's last turn, within the limits of time and blocks.

    Sessions stand in the order of their last turn, so the first is the one that has waited longest. `on_let_go` is told
    what each of them has held when it holds nothing any more.
    """

    def __init__(self, pool: BlockPool, settings: CacheSettings, on_let_go: Callable[[KVHolding], None]) -> None:
        self._pool = pool
        self._lifetime_ns = round(settings.session_seconds * 1e9)
        self._max_blocks = settings.session_blocks
        self._on_let_go = on_let_go
        self._sessions: OrderedDict[str, KeptSession] = OrderedDict()
        self._num_blocks = 0
        self._now_ns = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def num_blocks(self) -> int:
        """Blocks of all sessions, shared ones counted in each."""
        return self._num_blocks

    @property
    def blocks_by_holder(self) -> Mapping[str, Sequence[int]]:
        """Blocks by holder, as the pool knows it."""
        return {holder_of(session_id): kept.blocks for session_id, kept in self._sessions.items()}

    def last_turn_ns(self, session_id: str) -> int | None:
        """When the turn ended whose blocks the session holds; None where it holds none."""
        kept = self._sessions.get(session_id)
        return None if kept is None else kept.changed_ns

    def holdings(self, now_ns: int) -> list[KVHolding]:
        """What each session holds."""
        return [kept.holding(session_id, now_ns) for session_id, kept in self._sessions.items()]

    def kept_of(self, blocks: Sequence[int]) -> Sequence[int]:
        """What a session would hold of them: a prefix longer than the limit as far as the limit goes."""
        return blocks[: self._max_blocks] if self._lifetime_ns else ()

    def inherit(self, session_id: str, owner: str, blocks: Sequence[int], now_ns: int) -> None:
        """Takes over all that a turn's request holds, which are `blocks`, in place of what the session held before."""
        if not self._lifetime_ns:
            return
        before = self._take_out(session_id)
        kept = KeptSession(
            blocks=tuple(blocks),
            since_ns=now_ns if before is None else before.since_ns,
            changed_ns=now_ns,
            expires_ns=now_ns + self._lifetime_ns,
            past_block_ns=0 if before is None else before.block_ns(now_ns),
        )
        self._pool.rename(owner, holder_of(session_id), len(kept.blocks))
        self._sessions[session_id] = kept
        self._num_blocks += len(kept.blocks)
        while self._num_blocks > self._max_blocks:
            self.drop_oldest()

    def expire(self, now_ns: int) -> None:
        """Lets go of the sessions whose time is over; the time is also that of what is dropped until the next call."""
        self._now_ns = now_ns
        while (expires_ns := self.next_expiry_ns()) is not None and expires_ns <= now_ns:
            self.drop_oldest()

    def next_expiry_ns(self) -> int | None:
        """When the time of the next session is over; None where there is none. All have the same lifetime."""
        return next(iter(self._sessions.values())).expires_ns if self._sessions else None

    def drop_oldest(self) -> None:
        """Lets go of the session that has waited longest; its blocks stay cached until somebody needs them."""
        session_id = next(iter(self._sessions))
        kept = self._take_out(session_id)
        if kept is not None:
            self._on_let_go(kept.holding(session_id, max(self._now_ns, kept.changed_ns)))

    def _take_out(self, session_id: str) -> KeptSession | None:
        kept = self._sessions.pop(session_id, None)
        if kept is not None:
            self._num_blocks -= len(kept.blocks)
            self._pool.give_back(holder_of(session_id), kept.blocks[::-1])
        return kept
