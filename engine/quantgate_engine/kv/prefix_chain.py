"""What a sequence begins with, block by block: the hashes that find it in the cache, and the tokens that prove it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Digest = Callable[[bytes], bytes]

_TOKEN_BYTES = array("I").itemsize


class Root(NamedTuple):
    """Where a chain starts; its content is who the chain belongs to."""

    digest: bytes
    content: bytes


@dataclass(slots=True, eq=False)
class CachedRun:
    """Blocks that follow each other in a sequence, whose number `first` is the first of them; the first `count` can
    be found.

    `text` spells their tokens, and `before` leads to what comes before them (None where nothing does). `digest` is the
    hash of the prefix that ends with the first block.
    """

    root: Root
    digest: bytes
    first: int
    blocks: Sequence[int]
    count: int
    text: bytes
    before: CachedRun | None


class PrefixChain:
    """The full blocks of one sequence; each stands for the prefix that ends with it.

    `text` spells the tokens of all of them in bytes. There is no object for each block: with thousands of requests the
    garbage collector would walk over hundreds of thousands. The first `num_proved` blocks are known to have the tokens
    that `run` leads to, so that nothing is compared twice.
    """

    __slots__ = ("_digests", "_hash", "_width", "num_blocks", "num_proved", "root", "run", "text")

    def __init__(self, root: Root, block_size: int, digest: Digest) -> None:
        self.root = root
        self.text = b""
        self.num_blocks = 0
        self.run: CachedRun | None = None
        self.num_proved = 0
        self._hash = digest
        self._digests: tuple[bytes, ...] = ()
        self._width = block_size * _TOKEN_BYTES

    def lengthen(self, tokens: Sequence[int]) -> None:
        """Appends whole blocks, which `tokens` fill."""
        self.text += array("I", tokens).tobytes()
        self.num_blocks = len(self.text) // self._width

    def digest(self, place: int) -> bytes:
        """The hash of the prefix that ends with block number `place`, chained from the root.

        It is made when it is asked for, with those before: of an answer hardly more than the first block is, because a
        run is found by its first prefix.
        """
        if place >= len(self._digests):
            self._hash_up_to(place + 1)
        return self._digests[place]

    def _hash_up_to(self, count: int) -> None:
        text, width, digest = self.text, self._width, self._hash
        last, digests = self._digests[-1] if self._digests else self.root.digest, list[bytes]()
        for position in range(len(self._digests) * width, count * width, width):
            last = digest(last + text[position : position + width])
            digests.append(last)
        self._digests += tuple(digests)

    def make_run(self, first: int, blocks: Sequence[int]) -> CachedRun:
        """The run of `blocks`, which hold this chain's from number `first` on; those before are proved."""
        stop = first + len(blocks)
        text = self.text[first * self._width : stop * self._width]
        before = self.run if first else None
        self.run = CachedRun(self.root, self.digest(first), first, blocks, len(blocks), text, before)
        self.num_proved = stop
        return self.run

    def common(self, run: CachedRun, place: int) -> int:
        """How many blocks, from number `place` on, can be found in `run` with the tokens of this chain.

        It is the first of the run, or one behind those that are proved. None where the tokens before are others.
        """
        width, stop = self._width, min(run.first + run.count, self.num_blocks)
        if run is not self.run:
            if not self._follows(run):
                return 0
            self.run, self.num_proved = run, place
        proved, ahead = self.num_proved, width * run.first
        if run.text[proved * width - ahead : stop * width - ahead] == self.text[proved * width : stop * width]:
            proved = max(proved, stop)
        while proved < stop:
            mine = self.text[proved * width : (proved + 1) * width]
            if run.text[proved * width - ahead : (proved + 1) * width - ahead] != mine:
                break
            proved += 1
        self.num_proved = proved
        return min(proved, stop) - place

    def common_after(self, place: int) -> int:
        """How many blocks from number `place` on, which are behind proved ones, can be found in the run of those."""
        run = self.run
        return self.common(run, place) if run is not None and run.first <= place < run.first + run.count else 0

    def _follows(self, run: CachedRun) -> bool:
        """Whether what comes before the run has the tokens that this chain has there."""
        width, left, before = self._width, run.first, run.before
        while before is not None:
            if before is self.run and left <= self.num_proved:
                return True
            if left > before.first:
                if before.text[: (left - before.first) * width] != self.text[before.first * width : left * width]:
                    return False
                left = before.first
            before = before.before
        return run.root == self.root
