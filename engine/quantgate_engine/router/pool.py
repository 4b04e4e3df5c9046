"""One engine behind the router."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from quantgate_engine.clock import Clock
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.base import Executor
from quantgate_engine.pool_state import PoolState
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

    @property
    def state(self) -> PoolState:
        """What it is and how it stands, for those who watch."""
        return PoolState(
            takes=str(self.settings.rule),
            slo_classes=self.settings.slo_classes,
            max_active_requests=self.core.max_active_requests,
            max_sequence_tokens=self.core.max_sequence_tokens,
            block_size=self.core.executor.block_size,
            num_kv_blocks=self.core.num_kv_blocks,
            load=self.core.load,
        )

    def can_run(self, arrival: Arrival) -> bool:
        """Whether its engine has the request's class, and room for it when it has nothing else to do."""
        known = arrival.terms.slo_class in self.settings.slo_classes
        return known and self.core.refusal(*arrival) is None

    def output_room(self, arrival: Arrival) -> int:
        """The most output tokens, up to the request's own `max_tokens`, with which it would be this pool's; at least 1.

        It is for requests that leave their length to the pools.
        """
        rule = self.settings.rule
        most = min(arrival.params.max_tokens, rule.output_tokens.most or arrival.params.max_tokens)
        params = replace(arrival.params, max_tokens=most)
        room = self.core.output_room(arrival.prompt_token_ids, params, arrival.terms)
        slo_class = str(arrival.terms.slo_class)
        takes = slo_class in self.settings.slo_classes and rule.takes(slo_class, len(arrival.prompt_token_ids), room)
        return room if takes else 1

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
