"""The physical blocks of the KV cache: which are free, which are cached, and who holds each of the others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence


class BlockPoolError(RuntimeError):
    """The pool's books do not add up, or somebody gave back what they did not hold: a defect of the engine."""


def _nobody_minds(_block: int) -> None:
    return None


class BlockPool:
    """Block numbers 0 .. num_blocks - 1, each in exactly one of three places; every move is O(1).

    free: nothing of use lies in it. held: by one owner, or by several that share it (its references are its holders).
    cached: held by nobody, but a prefix lies in it that a later request may take up again.

    The free list is a stack: the block given back last is taken first, while it may still lie in a processor's cache.
    Where none is free, the block that has been cached longest is evicted, and `on_evict` is told.
    """

    def __init__(self, num_blocks: int, on_evict: Callable[[int], None] = _nobody_minds) -> None:
        self.num_blocks = num_blocks
        self.num_references = 0
        self._on_evict = on_evict
        self._free = list(range(num_blocks - 1, -1, -1))
        self._holders: dict[int, set[str]] = {}
        # A set that remembers the order, which is that of eviction. Of a plain dict the first key is not found in O(1):
        # whoever asks for it walks over all that were taken out before it.
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._kept: set[int] = set()

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

    @property
    def num_held(self) -> int:
        return len(self._holders)

    def references(self, block: int) -> int:
        """How many hold the block; 0 for one that is free or cached."""
        return len(self._holders.get(block, ()))

    def is_kept(self, block: int) -> bool:
        """Whether the block will be cached, not free, when its last holder lets go."""
        return block in self._kept

    def take(self, owner: str, count: int) -> list[int]:
        """Blocks for `owner` alone; raises BlockPoolError where too many are held: callers ask for what is there."""
        while len(self._free) < count:
            if not self._cached:
                raise BlockPoolError(
                    f"request {owner} asked for {count} blocks, and {self.num_held} of {self.num_blocks} are held"
                )
            self._evict()
        taken = [self._free.pop() for _ in range(count)]
        for block in taken:
            self._holders[block] = {owner}
        self.num_references += count
        return taken

    def share(self, owner: str, block: int) -> None:
        """Makes `owner` one more holder of a block that is held or cached."""
        holders = self._holders.get(block)
        if holders is None:
            if block not in self._cached:
                raise BlockPoolError(f"request {owner} wanted a share of block {block}, which is free")
            del self._cached[block]
            holders = self._holders[block] = set()
        if owner in holders:
            raise BlockPoolError(f"request {owner} wanted a second share of block {block}")
        holders.add(owner)
        self.num_references += 1

    def keep(self, block: int) -> None:
        """Has a held block cached, in place of freed, when its last holder lets go."""
        self._kept.add(block)

    def give_back(self, owner: str, blocks: Iterable[int]) -> None:
        """The one way back. Raises BlockPoolError at the first block that `owner` does not hold (a second release)."""
        for block in blocks:
            holders = self._holders.get(block, set())
            if owner not in holders:
                named = " and ".join(sorted(holders)) or None
                raise BlockPoolError(f"request {owner} gave back block {block}, which {named} holds")
            holders.remove(owner)
            self.num_references -= 1
            if not holders:
                del self._holders[block]
                if block in self._kept:
                    self._cached[block] = None
                else:
                    self._free.append(block)

    def evict_all(self) -> None:
        """Frees every cached block; `on_evict` is told of each."""
        while self._cached:
            self._evict()

    def _evict(self) -> None:
        block, _ = self._cached.popitem(last=False)
        self._kept.remove(block)
        self._free.append(block)
        self._on_evict(block)

    def check(self, holdings: Mapping[str, Sequence[int]]) -> None:
        """Raises BlockPoolError unless free + held + cached = total, each once, and `holdings` names every holder."""
        expected: dict[int, set[str]] = {}
        for owner, blocks in holdings.items():
            for block in blocks:
                owners = expected.setdefault(block, set())
                if owner in owners:
                    raise BlockPoolError(f"block {block} lies twice in the table of {owner}")
                owners.add(owner)
        if expected != self._holders:
            wrong = next(b for b in range(self.num_blocks) if expected.get(b) != self._holders.get(b))
            raise BlockPoolError(
                f"block {wrong} belongs to {_names(self._holders.get(wrong))}, but lies with "
                f"{_names(expected.get(wrong))}"
            )
        everywhere = sorted([*self._free, *self._cached, *self._holders])
        if everywhere != list(range(self.num_blocks)):
            raise BlockPoolError(
                f"free ({self.num_free}) + held ({self.num_held}) + cached ({self.num_cached}) blocks are not each "
                f"of the {self.num_blocks} once"
            )
        if self.num_references != sum(map(len, self._holders.values())) or not self._cached.keys() <= self._kept:
            raise BlockPoolError(f"the pool counts {self.num_references} references, its holders say otherwise")


def _names(holders: Iterable[str] | None) -> str:
    return " and ".join(sorted(holders)) if holders else "None"
