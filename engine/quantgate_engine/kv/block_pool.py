"""The physical blocks of the KV cache: which are free, and who owns each of the others."""

from __future__ import annotations

from collections.abc import Iterable


class BlockPoolError(RuntimeError):
    """The pool's books do not add up, or somebody gave back what they did not own: a defect of the engine."""


class BlockPool:
    """Hands out block numbers 0 .. num_blocks - 1. A block has one owner at a time; taking and giving back are O(1).

    The free list is a stack: the block given back last is taken first, while it may still lie in a cache.
    """

    def __init__(self, num_blocks: int) -> None:
        self._free = list(range(num_blocks - 1, -1, -1))
        self._owners: list[str | None] = [None] * num_blocks

    @property
    def num_blocks(self) -> int:
        return len(self._owners)

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_held(self) -> int:
        return len(self._owners) - len(self._free)

    def take(self, owner: str) -> int:
        """One free block for `owner`; raises BlockPoolError where none is left: callers ask only for promised ones."""
        if not self._free:
            raise BlockPoolError(f"request {owner} asked for a block, and all {self.num_blocks} are held")
        block = self._free.pop()
        self._owners[block] = owner
        return block

    def give_back(self, owner: str, blocks: Iterable[int]) -> None:
        """Frees `blocks`; raises BlockPoolError at the first that `owner` does not hold (a second release, say)."""
        for block in blocks:
            if self._owners[block] != owner:
                raise BlockPoolError(f"request {owner} gave back block {block}, which {self._owners[block]} holds")
            self._owners[block] = None
            self._free.append(block)

    def check(self, holdings: dict[str, list[int]]) -> None:
        """Raises BlockPoolError unless each block is free, once, or held by the one owner that `holdings` names."""
        expected: list[str | None] = [None] * self.num_blocks
        for owner, blocks in holdings.items():
            for block in blocks:
                if expected[block] is not None:
                    raise BlockPoolError(f"block {block} lies in the tables of {expected[block]} and {owner}")
                expected[block] = owner
        if expected != self._owners:
            wrong = next(b for b in range(self.num_blocks) if expected[b] != self._owners[b])
            raise BlockPoolError(f"block {wrong} belongs to {self._owners[wrong]}, but lies with {expected[wrong]}")
        if sorted(self._free) != [block for block, owner in enumerate(self._owners) if owner is None]:
            raise BlockPoolError(f"free ({self.num_free}) + held ({self.num_held}) blocks are not each block once")
