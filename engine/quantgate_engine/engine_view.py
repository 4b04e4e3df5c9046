"""What an engine tells of itself: its limits, its load, and who holds its memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from quantgate_engine.clock import Clock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine_books import EngineBooks
from quantgate_engine.executor.base import Executor
from quantgate_engine.kv.holding import HoldingLimits, KVHolding, LongHolder, long_holders
from quantgate_engine.live_requests import LiveRequests
from quantgate_engine.pool_state import PoolState
from quantgate_engine.request import AbortCause, Request
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.step_result import StepLoad, StepResult

Note = Callable[[LiveRequests, StepResult], None]
"""What somebody wants of the thread that steps; what ends by it goes into the step's result.

It is carried out by the books that are open then, which may be newer than the note.
"""


class EngineView:
    """An executor with its settings, the requests that have not ended, and the books that are kept of them."""

    def __init__(self, executor: Executor, config: EngineConfig, clock: Clock) -> None:
        self.executor = executor
        self.clock = clock
        self._config = config
        self._requests: dict[str, Request] = {}
        self._inbox: deque[Note] = deque()
        self._wanted_caps = Caps(
            executor.max_context_tokens, config.max_active_requests, config.admission.max_kv_tokens
        )
        self._open_books()

    @property
    def has_work(self) -> bool:
        """Whether `step` has anything to do."""
        return bool(self._inbox or self._requests)

    def is_live(self, request_id: str) -> bool:
        """Whether a request of that id has not ended; any thread may ask."""
        return request_id in self._requests

    @property
    def aborts_by_cause(self) -> Mapping[AbortCause, int]:
        """Requests given up so far; causes that never came up may be missing."""
        return self._live.aborts_by_cause

    @property
    def load(self) -> StepLoad:
        """Queues and cache as they stand; any thread may look."""
        return StepLoad(
            active_requests=self._scheduler.num_active,
            waiting_requests=self._scheduler.num_waiting,
            used_tokens=self._kv.stored_tokens,
            allocated_blocks=self._kv.held_blocks,
            slot_utilization=self._kv.slot_utilization,
        )

    @property
    def num_kv_blocks(self) -> int:
        """Blocks of the KV cache's pool."""
        return self.executor.num_blocks

    @property
    def max_active_requests(self) -> int:
        """Requests that may hold KV at once."""
        return self.caps.max_active_requests

    @property
    def slo_classes(self) -> tuple[str, ...]:
        """Names of the SLO classes that requests may have, the most urgent first."""
        return self._config.batching.class_names

    @property
    def held_blocks(self) -> int:
        """KV blocks that requests, or sessions between two turns, hold now."""
        return self._kv.held_blocks

    @property
    def caps(self) -> Caps:
        """The hard caps of admission as they stand."""
        return self._admission.caps

    @property
    def pool_states(self) -> Mapping[str, PoolState]:
        """Nothing: an engine by itself has no pools."""
        return {}

    def kv_holdings(self) -> list[KVHolding]:
        """Who holds KV blocks, how many and for how long, those with the most first; for the thread that steps."""
        return self._kv.holdings(self.clock.now_ns())

    def kv_long_holders(self, limits: HoldingLimits | None = None) -> list[LongHolder]:
        """Of `kv_holdings`, those that are a finding: far above the median, or holding for very long."""
        return long_holders(self.kv_holdings(), limits or HoldingLimits())

    def kv_greatest_holders(self) -> list[KVHolding]:
        """The stays in the KV cache with the most block-seconds of all that have ended, the costliest first."""
        return self._kv.greatest_holders.listing()

    def _open_books(self) -> None:
        """New books from now on. Each of them has a name here, because a step looks at all of them."""
        books = EngineBooks(self.executor, self._config, self.clock, self._requests, self._wanted_caps)
        self._kv = books.kv
        self._sharing = books.sharing
        self._admission = books.admission
        self._scheduler = books.scheduler
        self._live = books.live
        self._computation = books.computation
