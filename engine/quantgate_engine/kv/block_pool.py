"""The physical blocks of the KV cache: which are free, which are cached, and who holds each of the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from quantgate_engine.kv.cached_blocks import CachedBlocks

_EVICTED_AHEAD = 256
"""One in so many blocks is evicted before it is needed, so that not each block that a decode takes evicts its own."""

_FREE, _USED, _KEPT = range(3)
"""Where a block is free; held, and free after that; held or cached."""


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

    Requests come and go with dozens of blocks, so each move takes many at once, and the books are by owner: a list for
    each, in the order in which the blocks came, and compared as a whole when the last of them go. What is known of a
    block by itself is one byte: anything larger has left the processor's cache when the block's turn comes.
    """

    def __init__(self, num_blocks: int, on_evict: Callable[[Sequence[int]], None] = _nobody_minds) -> None:
        self.num_blocks = num_blocks
        self.num_held = 0
        self.num_references = 0
        self._on_evict = on_evict
        self._evicted_ahead = num_blocks // _EVICTED_AHEAD
        self._free = list(range(num_blocks - 1, -1, -1))
        self._held: defaultdict[str, list[int]] = defaultdict(list)
        # Of the blocks that several hold, how many do beside the first.
        self._sharers: dict[int, int] = {}
        self._cached = CachedBlocks(num_blocks)
        self._state = bytearray(num_blocks)

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

    def num_unheld(self, blocks: Sequence[int]) -> int:
        """How many of `blocks`, none of which is free, nobody holds."""
        return self._cached.count(blocks)

    def first_kept(self, blocks: Sequence[int]) -> Sequence[int]:
        """Of `blocks` those before the first that will be free, and not cached, when its last holder lets go."""
        state = self._state
        for number, block in enumerate(blocks):
            if state[block] != _KEPT:
                return blocks[:number]
        return blocks

    def take(self, owner: str, count: int) -> list[int]:
        """Blocks for `owner` alone; raises BlockPoolError where too many are held: callers ask for what is there."""
        taken = self._take_out(owner, count)
        self._held[owner] += taken
        return taken

    def take_each(self, owners: Sequence[str]) -> list[int]:
        """One block for each of `owners`, in their order; raises as `take` does."""
        taken, held = self._take_out(" and ".join(owners), len(owners)), self._held
        for owner, block in zip(owners, taken, strict=True):
            held[owner].append(block)
        return taken

    def _take_out(self, owner: str, count: int) -> list[int]:
        free, state = self._free, self._state
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
            state[block] = _USED
        self.num_held += count
        self.num_references += count
        return taken

    def share(self, owner: str, blocks: Sequence[int]) -> None:
        """Makes `owner` one more holder of blocks that are held or cached; raises BlockPoolError for any other."""
        held, cached, sharers = self._held[owner], self._cached, self._sharers
        before = set(held)
        for block in blocks:
            if block in before:
                raise BlockPoolError(f"request {owner} wanted a second share of block {block}")
            if self._state[block] == _FREE:
                raise BlockPoolError(f"request {owner} wanted a share of block {block}, which is free")
            if block in cached:
                cached.remove(block)
                self.num_held += 1
            else:
                sharers[block] = sharers.get(block, 0) + 1
            before.add(block)
            held.append(block)
        self.num_references += len(blocks)

    def rename(self, owner: str, heir: str, count: int) -> None:
        """Makes `heir`, who holds nothing, the holder of the `count` blocks that `owner` holds."""
        held = self._held.pop(owner, [])
        if len(held) != count or heir in self._held:
            theirs = len(self._held.get(heir, ()))
            raise BlockPoolError(
                f"{heir} was to take over {count} blocks from {owner}; they hold {theirs} and {len(held)}"
            )
        if held:
            self._held[heir] = held

    def keep(self, blocks: Iterable[int]) -> None:
        """Has held blocks cached, in place of freed, when their last holder lets go."""
        state = self._state
        for block in blocks:
            state[block] = _KEPT

    def give_back(self, owner: str, blocks: Sequence[int]) -> None:
        """The one way back, in this order. Raises BlockPoolError where `owner` does not hold one (a second release)."""
        self._strike_out(owner, blocks)
        state, let_go = self._state, self._unshared(blocks)
        if cached := [block for block in let_go if state[block] == _KEPT]:
            self._cached.extend(cached)
        if len(cached) < len(let_go):
            self._set_free([block for block in let_go if state[block] != _KEPT])
        self.num_held -= len(let_go)
        self.num_references -= len(blocks)

    def evict_all(self) -> None:
        """Frees every cached block; `on_evict` is told."""
        self._evict(len(self._cached))

    def _evict(self, count: int) -> None:
        evicted = self._cached.pop_first(count)
        self._set_free(evicted)
        self._on_evict(evicted)

    def _set_free(self, blocks: Sequence[int]) -> None:
        state = self._state
        for block in blocks:
            state[block] = _FREE
        self._free.extend(blocks)

    def _unshared(self, blocks: Sequence[int]) -> Sequence[int]:
        """Of `blocks`, which one holder has let go of, those that no other holds."""
        sharers = self._sharers
        if sharers.keys().isdisjoint(blocks):
            return blocks
        unshared: list[int] = []
        for block in blocks:
            others = sharers.get(block)
            if others is None:
                unshared.append(block)
            elif others > 1:
                sharers[block] = others - 1
            else:
                del sharers[block]
        return unshared

    def _strike_out(self, owner: str, blocks: Sequence[int]) -> None:
        """Makes `owner` a holder of `blocks` no more.

        Raises BlockPoolError, and changes nothing, unless it holds each of them and each is named once.
        """
        held = self._held.get(owner, [])
        rest = max(0, len(held) - len(blocks))
        if held[rest:] == list(reversed(blocks)):
            # As a request lets go of its table, or a session of its blocks: the last to come are the first to leave.
            del held[rest:]
        else:
            leaving = set(blocks)
            if not leaving.issubset(held):
                wrong = next(block for block in blocks if block not in held)
                holders = [other for other, theirs in self._held.items() if wrong in theirs]
                raise BlockPoolError(f"request {owner} gave back block {wrong}, which {_names(holders)} holds")
            if len(leaving) < len(blocks):
                raise BlockPoolError(f"request {owner} gave back one of the blocks {list(blocks)} twice")
            held[:] = [block for block in held if block not in leaving]
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
        free = set(self._free)
        everywhere = sorted([*self._free, *self._cached, *booked])
        if everywhere != list(range(self.num_blocks)) or self.num_held != len(booked):
            raise BlockPoolError(
                f"free ({self.num_free}) + held ({self.num_held}) + cached ({self.num_cached}) blocks are not each "
                f"of the {self.num_blocks} once"
            )
        references = Counter(chain.from_iterable(self._held.values()))
        sharers = {block: count - 1 for block, count in references.items() if count > 1}
        if sharers != self._sharers or self.num_references != references.total():
            raise BlockPoolError(f"the pool counts {self.num_references} references, its holders say otherwise")
        if unkept := [block for block in self._cached if self._state[block] != _KEPT]:
            raise BlockPoolError(f"the blocks {unkept} are cached, and were not to be kept")
        if unlike := [block for block, state in enumerate(self._state) if (state == _FREE) != (block in free)]:
            raise BlockPoolError(f"the blocks {unlike} are free, and not on the list of those, or the other way round")


def _holders(blocks_by_owner: Mapping[str, Iterable[int]]) -> dict[int, set[str]]:
    """Who holds each block."""
    holders: defaultdict[int, set[str]] = defaultdict(set)
    for owner, blocks in blocks_by_owner.items():
        for block in blocks:
            holders[block].add(owner)
    return holders


def _names(holders: Iterable[str]) -> str:
    return " and ".join(sorted(holders)) or "None"
