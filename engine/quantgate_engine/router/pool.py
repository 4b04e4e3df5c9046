"""One engine behind the router."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from quantgate_engine.clock import Clock
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.base import Executor
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.router.settings import PoolSettings
from quantgate_engine.sampling_params import SamplingParams


class Arrival(NamedTuple):
    """A request on its way to a pool: the arguments of `EngineCore.add_request`."""

    request_id: str
    prompt_token_ids: tuple[int, ...]
    params: SamplingParams
    terms: RequestTerms


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """An engine with the settings that it was made with."""

    settings: PoolSettings
    core: EngineCore

    @classmethod
    def over(cls, settings: PoolSettings, executor: Executor, clock: Clock) -> Pool:
        """A pool with a new engine over `executor`, whose memory is to be sized by `settings.engine`."""
        return cls(settings, EngineCore(executor, settings.engine, clock))

    @property
    def name(self) -> str:
        return self.settings.name

    def can_run(self, arrival: Arrival) -> bool:
        """Whether its engine has the request's class, and room for it when it has nothing else to do."""
        known = arrival.terms.slo_class in self.settings.slo_classes
        return known and self.core.refusal(*arrival) is None

    def is_full(self, live: int) -> bool:
        """Whether one of its thresholds is reached; `live`: its requests that have not ended."""
        spill = self.settings.spill
        if spill is None:
            return False
        load = self.core.load
        waiting = live - load.active_requests
        return (spill.waiting_requests is not None and waiting >= spill.waiting_requests) or (
            spill.held_share is not None and load.allocated_blocks >= spill.held_share * self.core.num_kv_blocks
        )
