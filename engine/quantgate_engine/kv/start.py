"""What a request begins with: blocks that somebody else computed, or its own from before it was swapped out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Start:
    """`tokens` need not be computed again: they lie in the `shared` blocks, or in host memory (`swapped`).

    The last shared block may be used in part; it is copied before anything is written behind that part. `cached`: the
    prefix cache has found the shared blocks, so it knows them already.
    """

    tokens: int = 0
    shared: tuple[int, ...] = ()
    swapped: bool = False
    cached: bool = False


FROM_SCRATCH = Start()
