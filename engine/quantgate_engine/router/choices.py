"""Which of the pools that would take a request gets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from quantgate_engine.router.pool import Pool
from quantgate_engine.router.settings import ChoiceName

LiveRequestsOf = Callable[[Pool], int]
"""Requests of a pool that have not ended, waiting ones included."""

Choice = Callable[[Sequence[Pool], LiveRequestsOf], Pool]
"""(the pools that take the request, in their order; their live requests) -> one of them."""


def first_match(pools: Sequence[Pool], _live: LiveRequestsOf) -> Pool:
    return pools[0]


def least_loaded(pools: Sequence[Pool], live: LiveRequestsOf) -> Pool:
    """Live requests / requests that may run at once; the first of several that are alike."""
    return min(pools, key=lambda pool: live(pool) / pool.core.caps.max_active_requests)


CHOICES: Mapping[ChoiceName, Choice] = MappingProxyType({"first-match": first_match, "least-loaded": least_loaded})
