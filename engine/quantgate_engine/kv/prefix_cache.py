"""Which blocks hold which prefixes, so that requests with equal first tokens compute them once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from quantgate_engine.kv.prefix_chain import CachedRun, Digest, PrefixChain, Root


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


_NO_RUN = CachedRun(Root(b"", b""), b"", first=0, blocks=(), count=0, text=b"", before=None)


class PrefixCache:
    """Runs of full blocks by the chained hash of all tokens up to the end of their first block.

    The chain starts from `identity` (model, scheme, KV dtype), and from a request's own salt where it has one, each
    field with its length, so that no two roots spell the same bytes. A hash only finds a run: its tokens, and
    those of every block before it, are compared with the request's own, because a collision would hand one user
    another's text (GHSA-rm76-4mrf-v9r8 shows that it happens).

    A run is what one request has registered at once, dozens of blocks in most cases. An entry for each block would take
    several times as long, because whatever is kept of a single block has left the processor's caches when its turn
    comes.
    """

    def __init__(self, num_blocks: int, block_size: int, identity: tuple[str, ...], digest: Digest = sha256) -> None:
        self._block_size = block_size
        self._identity = identity
        self._digest = digest
        self._starts: dict[bytes, CachedRun] = {}
        self._run_in = [_NO_RUN] * num_blocks
        self._unsalted = self._root("")

    def __len__(self) -> int:
        return sum(run.count for run in self._starts.values())

    def root(self, salt: str = "") -> Root:
        """The start of every chain of requests with this salt."""
        return self._root(salt) if salt else self._unsalted

    def _root(self, salt: str) -> Root:
        fields = [field.encode() for field in (*self._identity, salt)]
        content = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
        return Root(self._digest(content), content)

    def chain(self, salt: str = "") -> PrefixChain:
        """A chain of no block yet."""
        return PrefixChain(self.root(salt), self._block_size, self._digest)

    def lengthen(self, chain: PrefixChain, tokens: Callable[[int, int], Sequence[int]], num_tokens: int) -> None:
        """Lengthens `chain` by every full block that it lacks of the first `num_tokens`.

        tokens(start, stop) gives those of the sequence. None is spelled, or hashed, twice, however often a request is
        looked at.
        """
        size = self._block_size
        start, stop = chain.num_blocks * size, num_tokens // size * size
        if start < stop:
            chain.lengthen(tokens(start, stop))

    def find(self, chain: PrefixChain) -> list[int]:
        """The blocks that hold the first prefixes of `chain`, as far as all are here, verified token by token."""
        found: list[int] = []
        while len(found) < chain.num_blocks and (blocks := self._known(chain, len(found))):
            found += blocks
        return found

    def add(self, chain: PrefixChain, blocks: Sequence[int], first: int = 0) -> list[int]:
        """Registers computed blocks, which hold those of `chain` from number `first` on.

        Returns those that can be found from now on. Not among them: a block whose prefix can be found already; and one
        that holds a prefix already (a fork with another salt holds the same block under another name, and of two names
        one would be left over when the block is evicted), or starts a run with a hash that another run starts with, nor
        those behind it, which could not be reached.
        """
        added: list[int] = []
        if first > chain.num_proved:
            return added
        # The run that it started from may hold also what it came to compute by itself.
        place, stop = first + chain.common_after(first), first + len(blocks)
        while place < stop:
            known = len(self._known(chain, place))
            place += known
            news = self._news(blocks[place - first :])
            if news and chain.digest(place) not in self._starts:
                run = chain.make_run(place, news)
                self._starts[run.digest] = run
                for block in news:
                    self._run_in[block] = run
                added += news
                place += len(news)
            elif not known:
                break
        return added

    def forget(self, blocks: Sequence[int]) -> None:
        """The blocks are about to hold something else. What follows one of them in its run cannot be found any more."""
        run_in = self._run_in
        for block in blocks:
            run, run_in[block] = run_in[block], _NO_RUN
            count = run.count
            if not count:
                continue
            # Those of a run are let go of from its end on, so hardly ever is there anything to look for.
            run.count = left = count - 1 if run.blocks[count - 1] == block else min(count, run.blocks.index(block))
            if not left:
                del self._starts[run.digest]

    def _known(self, chain: PrefixChain, place: int) -> Sequence[int]:
        """The blocks of the run that starts with number `place` of `chain`, as far as they hold those of the chain."""
        run = self._starts.get(chain.digest(place))
        return run.blocks[: chain.common(run, place)] if run is not None and run.first == place else ()

    def _news(self, blocks: Sequence[int]) -> Sequence[int]:
        """Of `blocks`, those before the first that holds something already."""
        run_in = self._run_in
        for number, block in enumerate(blocks):
            if run_in[block] is not _NO_RUN:
                return blocks[:number]
        return blocks
