"""One request's part of the KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quantgate_engine.kv.holding import KVHolding


@dataclass(frozen=True, slots=True)
class KVUsage:
    """What a request took of the cache: the most blocks it held at once, and blocks x seconds held."""

    peak_blocks: int
    block_seconds: float


@dataclass(slots=True)
class BlockTable:
    """Physical block of each logical block of a sequence, in order; `snapshot` is what executors are given of it.

    `promised_blocks` is how many the request is sure to get; `stored_tokens` how many of its slots are in use;
    `ready_slots` how many may be written as the table stands. `tail_is_foreign` says that the last block was taken over
    half full from someone else, so that it has to be copied before it is written. `num_registered` counts the first
    blocks that the prefix cache knows.
    """

    promised_blocks: int
    opened_ns: int
    changed_ns: int
    blocks: list[int] = field(default_factory=list)
    stored_tokens: int = 0
    ready_slots: int = 0
    tail_is_foreign: bool = False
    num_registered: int = 0
    block_nanoseconds: int = 0
    snapshot: tuple[int, ...] = ()

    @property
    def owed_blocks(self) -> int:
        """Blocks that were promised and not taken yet."""
        return max(0, self.promised_blocks - len(self.blocks)) + self.tail_is_foreign

    def append(self, blocks: Sequence[int], block_size: int, now_ns: int) -> None:
        """Takes in the blocks that follow, if any do; what the table has may be written from then on."""
        self.account(now_ns)
        self.blocks.extend(blocks)
        self.snapshot = tuple(self.blocks)
        self.ready_slots = len(self.blocks) * block_size

    def account(self, now_ns: int) -> None:
        """Adds the time since the last change, during which the table had the length that it has now."""
        self.block_nanoseconds += len(self.blocks) * (now_ns - self.changed_ns)
        self.changed_ns = now_ns

    def usage(self) -> KVUsage:
        """A table only grows until it is released, so its last length is its peak."""
        return KVUsage(peak_blocks=len(self.blocks), block_seconds=self.block_nanoseconds / 1e9)

    def holding(self, owner: str, now_ns: int) -> KVHolding:
        """The table as it stands."""
        block_ns = self.block_nanoseconds + len(self.blocks) * (now_ns - self.changed_ns)
        return KVHolding(owner, "request", len(self.blocks), (now_ns - self.opened_ns) / 1e9, block_ns / 1e9)
