"""What several requests may come to hold of the KV cache at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate

from quantgate_engine.request import Request


class Crowd:
    """Those that run, when it is asked who may join them. Here promises tell all: nothing is expected beyond them."""

    def __init__(self, running: Sequence[Request]) -> None:
        self.size = len(running)

    def peak_with(self, _candidate: Request) -> int:
        """Most KV tokens that they and the candidate are expected to hold at one time; 0 where promises tell all."""
        return 0

    def add(self, _request: Request) -> None:
        """The request has joined them."""
        self.size += 1


class ExpectingCrowd(Crowd):
    """The peak that is expected of requests of which it is guessed how many tokens are left.

    They end one after the other, those with the least left first. With left_1 >= left_2 >= ... the tokens still to come
    and held_i those there already, the pool holds, when the i-th of them ends,

        term_i = sum(held_1 .. held_i) + i x left_i

    and the peak is the largest of these. A candidate that comes in at place k leaves the terms before it as they are,
    and adds its own tokens and left_i to each term behind it. So it is enough to know the largest term up to each place
    and the largest term_i + left_i from each place on, and a candidate costs one binary search.
    """

    def __init__(self, running: Sequence[Request], left: Callable[[Request], int]) -> None:
        self._left = left
        self._rows = [(left(request), request.num_tokens) for request in running]
        self._arrange()

    def peak_with(self, candidate: Request) -> int:
        left, tokens = self._left(candidate), candidate.num_tokens
        place = bisect_left(self._less_left, -left)
        own = self._held_before[place] + tokens + (place + 1) * left
        return max(self._peak_before[place], own, self._peak_behind[place] + tokens)

    def add(self, request: Request) -> None:
        self._rows.append((self._left(request), request.num_tokens))
        self._arrange()

    def _arrange(self) -> None:
        self._rows.sort(reverse=True)
        self.size = len(self._rows)
        self._less_left = [-left for left, _ in self._rows]
        self._held_before = list(accumulate((tokens for _, tokens in self._rows), initial=0))
        terms = [
            held + ended * left
            for ended, (held, (left, _)) in enumerate(zip(self._held_before[1:], self._rows, strict=True), start=1)
        ]
        behind = [term + left for term, (left, _) in zip(terms, self._rows, strict=True)]
        self._peak_before = list(accumulate(terms, max, initial=0))
        self._peak_behind = list(accumulate(reversed(behind), max, initial=0))[::-1]
