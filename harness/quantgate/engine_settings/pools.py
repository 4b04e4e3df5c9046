"""Several engines behind a router, as YAML states them; defaults are the router's own."""

from __future__ import annotations

from pydantic import Field

from quantgate.engine_settings.group import Group, Strict
from quantgate.engine_settings.groups import AdmissionGroup, BatchingGroup, CacheGroup, PreemptionGroup, TimeoutsGroup
from quantgate_engine.config import EngineConfig
from quantgate_engine.router.settings import (
    ChoiceName,
    PoolRule,
    PoolSettings,
    RouterSettings,
    SpillSettings,
    TokenRange,
    TurnName,
)

_ENGINE = EngineConfig()
_ROUTER = RouterSettings()
_RANGE = TokenRange()


class PoolFields(Strict):
    """The settings of an engine in which pools over one loaded model may differ."""

    max_active_requests: int = Field(_ENGINE.max_active_requests, ge=1)
    max_step_tokens: int = Field(_ENGINE.max_step_tokens, ge=1)
    max_overtakes: int = Field(_ENGINE.max_overtakes, ge=1)
    max_context_tokens: int | None = Field(_ENGINE.max_context_tokens, ge=1)
    block_size: int = Field(_ENGINE.block_size, ge=1)
    num_kv_blocks: int | None = Field(_ENGINE.num_kv_blocks, ge=1)
    kv_memory_share: float | None = Field(_ENGINE.kv_memory_share, gt=0, le=1)
    batching: BatchingGroup = BatchingGroup()
    admission: AdmissionGroup = AdmissionGroup()
    cache: CacheGroup = CacheGroup()
    preemption: PreemptionGroup = PreemptionGroup()
    timeouts: TimeoutsGroup = TimeoutsGroup()


class TokenRangeEntry(Group):
    """See `quantgate_engine.router.settings.TokenRange`."""

    made_into = TokenRange

    least: int = _RANGE.least
    most: int | None = _RANGE.most


class PoolRuleEntry(Group):
    """See `quantgate_engine.router.settings.PoolRule`."""

    made_into = PoolRule

    slo_classes: tuple[str, ...] = Field((), strict=False)
    prompt_tokens: TokenRangeEntry = TokenRangeEntry()
    output_tokens: TokenRangeEntry = TokenRangeEntry()


class SpillEntry(Group):
    """See `quantgate_engine.router.settings.SpillSettings`."""

    made_into = SpillSettings

    to: str
    waiting_requests: int | None = None
    held_share: float | None = None


class PoolEntry(Strict):
    """See `quantgate_engine.router.settings.PoolSettings`. `engine` holds what differs from that of all pools."""

    name: str = Field(min_length=1)
    engine: PoolFields = PoolFields()
    rule: PoolRuleEntry = PoolRuleEntry()
    share: float = Field(1.0, gt=0)
    spill: SpillEntry | None = None

    def to_settings(self, engine: EngineConfig) -> PoolSettings:
        """`engine`: what holds for all pools with what differs in this one.

        Raises ConfigurationError where the pool's rule does not go with its engine.
        """
        return PoolSettings(
            name=self.name,
            engine=engine,
            rule=self.rule.to_engine(),
            share=self.share,
            spill=self.spill.to_engine() if self.spill is not None else None,
        )


class RouterGroup(Group):
    """See `quantgate_engine.router.settings.RouterSettings`."""

    made_into = RouterSettings

    choice: ChoiceName = _ROUTER.choice
    turns: TurnName = _ROUTER.turns
    max_passed_steps: int = _ROUTER.max_passed_steps
