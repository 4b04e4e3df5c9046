"""Which blocks hold which prefixes, so that requests with equal first tokens compute them once."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Digest = Callable[[bytes], bytes]

_TOKEN_BYTES = array("I").itemsize


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@dataclass(slots=True, eq=False)
class Prefix:
    """One full block of a prefix, after its `parent`; a root has no parent, and its content is who it belongs to.

    `block` is where it lies, as long as the cache has it.
    Contents are spelled out in bytes: these are compared at once, and tell the garbage collector nothing.
    """

    digest: bytes
    content: bytes
    parent: Prefix | None
    block: int = -1


_NO_PREFIX = Prefix(b"", b"", parent=None)


class PrefixCache:
    """Full blocks by the chained hash of all tokens up to their end.

    The chain starts from `identity` (model, scheme, KV dtype), and from a request's own salt where it has one, each
    field with its length, so that no two roots spell the same bytes. A hash only finds the entry: its tokens, and
    those of every block before it, are compared with the request's own, because a collision would hand one user
    another's text (GHSA-rm76-4mrf-v9r8 shows that it happens).
    """

    def __init__(self, num_blocks: int, block_size: int, identity: tuple[str, ...], digest: Digest = sha256) -> None:
        self._block_size = block_size
        self._identity = identity
        self._digest = digest
        self._entries: dict[bytes, Prefix] = {}
        self._in_block = [_NO_PREFIX] * num_blocks
        self._unsalted = self._root("")

    def __len__(self) -> int:
        return len(self._entries)

    def root(self, salt: str = "") -> Prefix:
        """The start of every chain of requests with this salt."""
        return self._root(salt) if salt else self._unsalted

    def _root(self, salt: str) -> Prefix:
        fields = [field.encode() for field in (*self._identity, salt)]
        content = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
        return Prefix(self._digest(content), content, parent=None)

    def after(self, parent: Prefix, tokens: tuple[int, ...]) -> Prefix:
        """The prefix that `tokens`, one block of them, make after `parent`; it need not be in the cache."""
        content = _spelled(tokens)
        return Prefix(self._digest(parent.digest + content), content, parent)

    def chain(self, chain: list[Prefix], tokens: Callable[[int, int], tuple[int, ...]], num_tokens: int) -> None:
        """Lengthens `chain`, which starts with a root, by every full block that it lacks of the first `num_tokens`.

        tokens(start, stop) gives those of the sequence. Nothing is hashed twice, however often a request is looked at.
        """
        size = self._block_size
        start, stop = (len(chain) - 1) * size, num_tokens // size * size
        if start < stop:
            spelled, width, digest, last = _spelled(tokens(start, stop)), size * _TOKEN_BYTES, self._digest, chain[-1]
            name = last.digest
            for position in range(0, len(spelled), width):
                content = spelled[position : position + width]
                name = digest(name + content)
                last = Prefix(name, content, last)
                chain.append(last)

    def find(self, wanted: Prefix) -> int | None:
        """The block that holds this very prefix, verified token by token to its first; None where there is none."""
        entry = self._entries.get(wanted.digest)
        return entry.block if entry is not None and _same(entry, wanted) else None

    def add(self, prefixes: Sequence[Prefix], blocks: Sequence[int]) -> list[int]:
        """Registers computed blocks, each with the prefix that it holds; returns those that can be found from now on.

        Not among them: a block whose prefix, or one with the same hash, the cache has already; and one that holds a
        prefix already: a fork with another salt holds the same block under another name, and of two names one would be
        left over when the block is evicted.
        """
        entries, in_block = self._entries, self._in_block
        added: list[int] = []
        for prefix, block in zip(prefixes, blocks, strict=True):
            digest = prefix.digest
            if digest not in entries and in_block[block] is _NO_PREFIX:
                entries[digest] = in_block[block] = prefix
                prefix.block = block
                added.append(block)
        return added

    def forget(self, blocks: Sequence[int]) -> None:
        """The blocks are about to hold something else."""
        entries, in_block = self._entries, self._in_block
        for block in blocks:
            del entries[in_block[block].digest]
            in_block[block] = _NO_PREFIX


def _spelled(tokens: tuple[int, ...]) -> bytes:
    return array("I", tokens).tobytes()


def _same(entry: Prefix, wanted: Prefix) -> bool:
    """Compares to the root. Chains that met once share their objects from there on: the walk is mostly two steps."""
    one: Prefix | None = entry
    other: Prefix | None = wanted
    while one is not other:
        if one is None or other is None or one.content != other.content:
            return False
        one, other = one.parent, other.parent
    wanted.parent = entry.parent
    return True
