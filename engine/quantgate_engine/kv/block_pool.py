"""The physical blocks of the KV cache: which are free, which are cached, and who holds each of the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, takewhile

from quantgate_engine.kv.cached_blocks import CachedBlocks

_EVICTED_AHEAD = 256
"""One in so many blocks is evicted before it is needed, so that not each block that a decode takes evicts its own."""


class BlockPoolError(RuntimeError):
    """The pool's books do not add up, or somebody gave back what they did not hold: a defect of the engine."""


def _nobody_minds(_blocks: Sequence[int]) -> None:
    return None


class BlockPool:
    """Block numbers 0 .. num_blocks - 1, each in exactly one of three places; every move is O(1) for each block.

    free: nothing of use lies in it. held: by one owner, or by several that share it (its references are its holders).
    cached: held by nobody, but a prefix lies in it that a later request may take up again.

    The free list is a stack: the block given back last is taken first, while it may still lie in a processor's cache.
    Where too few are free, the blocks that have been cached longest are evicted, and `on_evict` is told.

    Requests come and go with dozens of blocks, so each move takes many at once, and the books are by owner: one set for
    each, and not one for each block. What is known of a block by itself lies in an array by its number, which a
    processor's cache holds; a set of thousands of blocks it does not.
    """

    def __init__(self, num_blocks: int, on_evict: Callable[[Sequence[int]], None] = _nobody_minds) -> None:
        self.num_blocks = num_blocks
        self.num_held = 0
        self.num_references = 0
        self._on_evict = on_evict
        self._evicted_ahead = num_blocks // _EVICTED_AHEAD
        self._free = list(range(num_blocks - 1, -1, -1))
        self._held: defaultdict[str, set[int]] = defaultdict(set)
        self._references = [0] * num_blocks
        self._cached = CachedBlocks(num_blocks)
        self._kept = bytearray(num_blocks)

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_cached(self) -> int:
        return len(self._cached)

    @property
    def num_available(self) -> int:
        """Blocks that `take` can hand out."""
        return len(self._free) + len(self._cached)

    def num_unheld(self, blocks: Iterable[int]) -> int:
        """How many of `blocks` nobody holds."""
        return [self._references[block] for block in blocks].count(0)

    def first_kept(self, blocks: Iterable[int]) -> list[int]:
        """Of `blocks` those before the first that will be free, and not cached, when its last holder lets go."""
        return list(takewhile(self._kept.__getitem__, blocks))

    def take(self, owner: str, count: int) -> list[int]:
        """Blocks for `owner` alone; raises BlockPoolError where too many are held: callers ask for what is there."""
        free, references = self._free, self._references
        if count > len(free):
            if count > self.num_available:
                raise BlockPoolError(
                    f"request {owner} asked for {count} blocks, and {self.num_held} of {self.num_blocks} are held"
                )
            self._evict(min(len(self._cached), count - len(free) + self._evicted_ahead))
        rest = len(free) - count
        taken = free[rest:][::-1]
        del free[rest:]
        for block in taken:
            references[block] = 1
        self._held[owner].update(taken)
        self.num_held += count
        self.num_references += count
        return taken

    def share(self, owner: str, blocks: Sequence[int]) -> None:
        """Makes `owner` one more holder of blocks that are held or cached; raises BlockPoolError for any other."""
        held, references = self._held[owner], self._references
        for block in blocks:
            if block in held:
                raise BlockPoolError(f"request {owner} wanted a second share of block {block}")
            if not references[block]:
                if block not in self._cached:
                    raise BlockPoolError(f"request {owner} wanted a share of block {block}, which is free")
                self._cached.remove(block)
                self.num_held += 1
            references[block] += 1
            held.add(block)
        self.num_references += len(blocks)

    def rename(self, owner: str, heir: str, count: int) -> None:
        """Makes `heir`, who holds nothing, the holder of the `count` blocks that `owner` holds."""
        held = self._held.pop(owner, set())
        if len(held) != count or heir in self._held:
            theirs = len(self._held.get(heir, ()))
            raise BlockPoolError(
                f"{heir} was to take over {count} blocks from {owner}; they hold {theirs} and {len(held)}"
            )
        if held:
            self._held[heir] = held

    def keep(self, blocks: Iterable[int]) -> None:
        """Has held blocks cached, in place of freed, when their last holder lets go."""
        kept = self._kept
        for block in blocks:
            kept[block] = True

    def give_back(self, owner: str, blocks: Sequence[int]) -> None:
        """The one way back, in this order. Raises BlockPoolError where `owner` does not hold one (a second release)."""
        self._strike_out(owner, blocks)
        references, kept = self._references, self._kept
        for block in blocks:
            references[block] -= 1
        let_go = [block for block in blocks if not references[block]]
        if cached := [block for block in let_go if kept[block]]:
            self._cached.extend(cached)
        if len(cached) < len(let_go):
            self._free.extend([block for block in let_go if not kept[block]])
        self.num_held -= len(let_go)
        self.num_references -= len(blocks)

    def evict_all(self) -> None:
        """Frees every cached block; `on_evict` is told."""
        self._evict(len(self._cached))

    def _evict(self, count: int) -> None:
        evicted = self._cached.pop_first(count)
        kept = self._kept
        for block in evicted:
            kept[block] = False
        self._free.extend(evicted)
        self._on_evict(evicted)

    def _strike_out(self, owner: str, blocks: Sequence[int]) -> None:
        """Makes `owner` a holder of `blocks` no more.

        Raises BlockPoolError, and changes nothing, unless it holds each of them and each is named once.
        """
        held = self._held.get(owner, set())
        if not held.issuperset(blocks):
            wrong = next(block for block in blocks if block not in held)
            holders = [other for other, theirs in self._held.items() if wrong in theirs]
            raise BlockPoolError(f"request {owner} gave back block {wrong}, which {_names(holders)} holds")
        rest = len(held) - len(blocks)
        held.difference_update(blocks)
        if len(held) != rest:
            held.update(blocks)
            raise BlockPoolError(f"request {owner} gave back one of the blocks {list(blocks)} twice")
        if not held:
            self._held.pop(owner, None)

    def check(self, holdings: Mapping[str, Sequence[int]]) -> None:
        """Raises BlockPoolError unless free + held + cached = total, each once, and `holdings` names every holder."""
        for owner, blocks in holdings.items():
            if twice := [block for block, count in Counter(blocks).items() if count > 1]:
                raise BlockPoolError(f"block {twice[0]} lies twice in the table of {owner}")
        expected, booked = _holders(holdings), _holders(self._held)
        if expected != booked:
            wrong = next(block for block in range(self.num_blocks) if expected.get(block) != booked.get(block))
            raise BlockPoolError(
                f"block {wrong} belongs to {_names(booked.get(wrong, ()))}, but lies with "
                f"{_names(expected.get(wrong, ()))}"
            )
        everywhere = sorted([*self._free, *self._cached, *booked])
        if everywhere != list(range(self.num_blocks)) or self.num_held != len(booked):
            raise BlockPoolError(
                f"free ({self.num_free}) + held ({self.num_held}) + cached ({self.num_cached}) blocks are not each "
                f"of the {self.num_blocks} once"
            )
        references = Counter(chain.from_iterable(self._held.values()))
        counted = {block: count for block, count in enumerate(self._references) if count}
        if counted != references or self.num_references != references.total():
            raise BlockPoolError(f"the pool counts {self.num_references} references, its holders say otherwise")
        if unkept := [block for block in self._cached if not self._kept[block]]:
            raise BlockPoolError(f"the blocks {unkept} are cached, and were not to be kept")


def _holders(blocks_by_owner: Mapping[str, Iterable[int]]) -> dict[int, set[str]]:
    """Who holds each block."""
    holders: defaultdict[int, set[str]] = defaultdict(set)
    for owner, blocks in blocks_by_owner.items():
        for block in blocks:
            holders[block].add(owner)
    return holders


def _names(holders: Iterable[str]) -> str:
    return " and ".join(sorted(holders)) or "None"
