"""The blocks that nobody holds and a prefix lies in, in the order in which they are evicted."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence

_IN_NONE = 0

_FEWEST_QUEUED = 256
"""Below that the queue is not worth tidying up."""


class CachedBlocks:
    """A queue that any block may leave; adding, leaving and taking the first are O(1) for each block, on average.

    It is a queue of runs, each of the blocks that came together, so that dozens of them cost hardly more than one.
    Whoever leaves from within stays in the run's list, but is in that run no more by `_run_of`; when such leftovers are
    more than the blocks, the queue is made anew. (An OrderedDict takes several times as long for each block, and of a
    plain dict the first key is not found in O(1): it walks over all that were taken out before it.)
    """

    def __init__(self, num_blocks: int) -> None:
        self._runs: deque[tuple[int, Sequence[int]]] = deque()
        self._run_of = [_IN_NONE] * num_blocks
        self._numbers = itertools.count(_IN_NONE + 1)
        self._count = 0
        self._num_queued = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, block: int) -> bool:
        return self._run_of[block] != _IN_NONE

    def count(self, blocks: Sequence[int]) -> int:
        """How many of `blocks` are here."""
        run_of = self._run_of
        return len(blocks) - [run_of[block] for block in blocks].count(_IN_NONE)

    def __iter__(self) -> Iterator[int]:
        """In the order of eviction."""
        run_of = self._run_of
        return (block for number, run in self._runs for block in run if run_of[block] == number)

    def extend(self, blocks: Sequence[int]) -> None:
        """Puts blocks that are not here at the end, in this order; the sequence is kept, and must not change."""
        number, run_of = next(self._numbers), self._run_of
        for block in blocks:
            run_of[block] = number
        self._count += len(blocks)
        self._runs.append((number, blocks))
        self._num_queued += len(blocks)
        if self._num_queued > max(_FEWEST_QUEUED, 2 * self._count):
            self._tidy_up()

    def remove(self, block: int) -> None:
        """Takes out a block that is here."""
        self._run_of[block] = _IN_NONE
        self._count -= 1

    def pop_first(self, count: int) -> list[int]:
        """Takes out the first `count` of the blocks, of which there are so many."""
        run_of = self._run_of
        popped: list[int] = []
        while (missing := count - len(popped)) > 0:
            number, run = self._runs.popleft()
            if len(run) > missing:
                self._runs.appendleft((number, run[missing:]))
                run = run[:missing]
            self._num_queued -= len(run)
            here = [block for block in run if run_of[block] == number]
            for block in here:
                run_of[block] = _IN_NONE
            popped += here
        self._count -= count
        return popped

    def _tidy_up(self) -> None:
        blocks = list(self)
        self._runs.clear()
        self._count = self._num_queued = 0
        self.extend(blocks)
