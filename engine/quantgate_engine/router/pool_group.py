"""What concerns all pools behind a router alike: sums over them, and the start and end of their work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.kv.holding import KVHolding
from quantgate_engine.pool_state import PoolState
from quantgate_engine.request import AbortCause
from quantgate_engine.router.pool import Pool
from quantgate_engine.router.settings import check_pools
from quantgate_engine.step_result import StepLoad


class PoolGroup:
    """Pools over one model. Methods mean what EngineCore says of them, for every pool."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        """Raises ConfigurationError where the pools do not go together."""
        check_pools([pool.settings for pool in pools])
        vocabularies = {pool.core.executor.vocab_size for pool in pools}
        if len(vocabularies) > 1:
            raise ConfigurationError(
                f"The pools have vocabularies of {' and '.join(map(str, sorted(vocabularies)))} tokens; expected one "
                "model behind a router."
            )
        self.pools = tuple(pools)

    @property
    def slo_classes(self) -> tuple[str, ...]:
        """Names of the classes that some pool has, in the order of the pools, each pool's most urgent first."""
        return tuple(dict.fromkeys(name for pool in self.pools for name in pool.settings.slo_classes))

    @property
    def aborts_by_cause(self) -> Mapping[AbortCause, int]:
        """Requests given up so far, of all pools."""
        return sum((Counter(pool.core.aborts_by_cause) for pool in self.pools), Counter[AbortCause]())

    @property
    def load(self) -> StepLoad:
        """Queues and caches of all pools together, as they stand."""
        loads = [pool.core.load for pool in self.pools]
        used = sum(load.used_tokens for load in loads)
        slots = sum(
            load.allocated_blocks * pool.core.executor.block_size for load, pool in zip(loads, self.pools, strict=True)
        )
        return StepLoad(
            active_requests=sum(load.active_requests for load in loads),
            waiting_requests=sum(load.waiting_requests for load in loads),
            used_tokens=used,
            allocated_blocks=sum(load.allocated_blocks for load in loads),
            slot_utilization=used / slots if slots else 0.0,
        )

    @property
    def num_kv_blocks(self) -> int:
        """Blocks of all pools' caches."""
        return sum(pool.core.num_kv_blocks for pool in self.pools)

    @property
    def held_blocks(self) -> int:
        """KV blocks that requests and sessions of all pools hold now."""
        return sum(pool.core.held_blocks for pool in self.pools)

    @property
    def max_active_requests(self) -> int:
        """Requests that may hold KV at once, in all pools."""
        return sum(pool.core.max_active_requests for pool in self.pools)

    def kv_holdings(self) -> list[KVHolding]:
        """Who holds KV blocks of any pool, pool by pool; for the thread that steps."""
        return [holding for pool in self.pools for holding in pool.core.kv_holdings()]

    def kv_greatest_holders(self) -> list[KVHolding]:
        """The stays with the most block-seconds of all that have ended, pool by pool, the costliest of each first."""
        return [stay for pool in self.pools for stay in pool.core.kv_greatest_holders()]

    @property
    def pool_states(self) -> Mapping[str, PoolState]:
        """The pools by name, as they stand; any thread may look."""
        return {pool.name: pool.state for pool in self.pools}

    @property
    def degrades(self) -> bool:
        """Whether some pool's admission cuts from requests that are above its caps."""
        return any(pool.core.degrades for pool in self.pools)

    @property
    def max_sequence_tokens(self) -> int:
        """Prompt plus output of the longest request that some pool's engine can ever run."""
        return max(pool.core.max_sequence_tokens for pool in self.pools)

    def expire_sessions(self) -> float | None:
        """In every pool, also where another one steps; the seconds until the next session's time is over."""
        nexts = [pool.core.expire_sessions() for pool in self.pools]
        return min((seconds for seconds in nexts if seconds is not None), default=None)

    def claim(self) -> None:
        """Makes the caller the one that steps all pools; raises RunError where somebody steps one of them already."""
        claimed: list[Pool] = []
        try:
            for pool in self.pools:
                pool.core.claim()
                claimed.append(pool)
        except RunError:
            for pool in claimed:
                pool.core.relinquish()
            raise

    def relinquish(self) -> None:
        """Ends the caller's claim."""
        for pool in self.pools:
            pool.core.relinquish()

    def reopen(self) -> None:
        """Takes requests again after a shutdown; for the thread that steps."""
        for pool in self.pools:
            pool.core.reopen()

    def forget(self) -> None:
        """Drops what requests that have ended left behind, in every pool; for the thread that steps."""
        for pool in self.pools:
            pool.core.forget()

    def shut_down(self, *, drain: bool) -> None:
        """Each pool drains by its own settings."""
        for pool in self.pools:
            pool.core.shut_down(drain=drain)

    def abort_all(self, cause: AbortCause) -> None:
        for pool in self.pools:
            pool.core.abort_all(cause)
