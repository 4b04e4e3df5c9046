"""The streaming front of several engines."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.router.pool import Pool
from quantgate_engine.router.router_core import RouterCore
from quantgate_engine.router.settings import RouterSettings


class Router(AsyncLLM):
    """An AsyncLLM whose requests are spread over pools: it streams, aborts, drains and tells of its steps alike.

    The pools' steps take turns on one thread (see `RouterSettings.turns`). max_unread_chunks: as for AsyncLLM.
    Raises ConfigurationError where the pools do not go together.
    """

    def __init__(
        self, pools: Sequence[Pool], settings: RouterSettings | None = None, max_unread_chunks: int | None = None
    ) -> None:
        self.core = RouterCore(pools, settings)
        super().__init__(self.core, max_unread_chunks)

    @property
    def pools(self) -> tuple[Pool, ...]:
        return self.core.pools
