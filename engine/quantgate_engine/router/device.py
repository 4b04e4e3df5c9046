"""A device that pools share: one of them steps at a time."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate_engine.router.pool import Pool
from quantgate_engine.router.settings import RouterSettings
from quantgate_engine.router.turns import TURN_POLICIES
from quantgate_engine.step_result import StepResult


class Device:
    """Lets the pools with work take turns, by the time that their steps take on the clock of their engines."""

    def __init__(self, pools: Sequence[Pool], settings: RouterSettings) -> None:
        self._pools = tuple(pools)
        self._turns = TURN_POLICIES[settings.turns](settings)

    @property
    def has_work(self) -> bool:
        return any(pool.core.has_work for pool in self._pools)

    def step(self) -> tuple[Pool, StepResult]:
        """One step of the pool whose turn it is; call it only where there is work."""
        pool = self._turns.next([pool for pool in self._pools if pool.core.has_work])
        started_ns = pool.core.clock.now_ns()
        result = pool.core.step()
        self._turns.used(pool, pool.core.clock.now_ns() - started_ns)
        if not self.has_work:
            self._turns.rested()
        return pool, result
