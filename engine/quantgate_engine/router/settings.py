"""Settings of several engines behind one router: the pools, which requests each takes, and how they share a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from quantgate_engine.config import EngineConfig
from quantgate_engine.setting_checks import (
    require,
    require_at_least,
    require_distinct,
    require_name,
    require_new_name,
    require_number,
)

ChoiceName = Literal["first-match", "least-loaded"]
TurnName = Literal["time-share", "priority"]


@dataclass(frozen=True, slots=True)
class TokenRange:
    """Lengths from `least` to `most` tokens, both included; `most` None: without an upper end."""

    least: int = 0
    most: int | None = None

    def __post_init__(self) -> None:
        require_at_least("TokenRange.least", self.least, 0)
        require(
            self.most is None or self.most >= self.least,
            "TokenRange.most",
            self.most,
            f"at least {self.least}, which is `least`, or None",
        )

    def holds(self, tokens: int) -> bool:
        return self.least <= tokens and (self.most is None or tokens <= self.most)

    def __str__(self) -> str:
        return f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class PoolRule:
    """Which requests a pool takes: those that all three conditions hold for. The default takes every request.

    slo_classes: names of SLO classes; none: any class that the pool's engine has.
    prompt_tokens: lengths of prompts. output_tokens: the longest output that a request asks for (its `max_tokens`).
    """

    slo_classes: tuple[str, ...] = ()
    prompt_tokens: TokenRange = field(default_factory=TokenRange)
    output_tokens: TokenRange = field(default_factory=TokenRange)

    def __post_init__(self) -> None:
        require_distinct("PoolRule.slo_classes", self.slo_classes)

    def takes(self, slo_class: str, prompt_tokens: int, output_tokens: int) -> bool:
        return (
            (not self.slo_classes or slo_class in self.slo_classes)
            and self.prompt_tokens.holds(prompt_tokens)
            and self.output_tokens.holds(output_tokens)
        )

    def __str__(self) -> str:
        classes = " or ".join(self.slo_classes) or "any class"
        return f"{classes} with {self.prompt_tokens} prompt and {self.output_tokens} output tokens"


@dataclass(frozen=True, slots=True)
class SpillSettings:
    """When new requests of a pool go to another one in its place. One threshold that is reached is enough.

    to: the other pool, whatever its own rule says. It must be able to run the request, and be below its own thresholds
    where it has any; else the request stays: what is spilled is never passed on.
    waiting_requests: so many requests of the pool wait for their first step; None: the queue does not count.
    held_share: blocks that are held / blocks of the pool; None: the cache does not count.
    """

    to: str
    waiting_requests: int | None = None
    held_share: float | None = None

    def __post_init__(self) -> None:
        require_at_least("SpillSettings.waiting_requests", self.waiting_requests, 1, optional=True)
        share = self.held_share
        if share is not None:
            require_number("SpillSettings.held_share", share)
        require(share is None or 0 < share <= 1, "SpillSettings.held_share", share, "above 0 and at most 1, or None")
        require(
            self.waiting_requests is not None or share is not None,
            "SpillSettings.waiting_requests",
            None,
            "a threshold here or in held_share",
        )


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """One pool: an engine of its own, with its own queues and KV cache.

    name: unlike those of the other pools.
    engine: small budgets and few active requests for short steps, large ones for throughput.
    rule: which requests it takes.
    share: of the device's time, in proportion to the shares of the other pools that have work (turns: `time-share`).
    spill: where new requests go while it is full; None: they wait in its queue.
    """

    name: str
    engine: EngineConfig
    rule: PoolRule = field(default_factory=PoolRule)
    share: float = 1.0
    spill: SpillSettings | None = None

    def __post_init__(self) -> None:
        require_new_name("PoolSettings.name", self.name)
        require_number("PoolSettings.share", self.share)
        require(self.share > 0, "PoolSettings.share", self.share, "above 0")
        unknown = [name for name in self.rule.slo_classes if name not in self.slo_classes]
        require(
            not unknown,
            "PoolSettings.rule.slo_classes",
            self.rule.slo_classes,
            f"classes that the engine of pool {self.name} has ({', '.join(self.slo_classes)})",
        )

    @property
    def slo_classes(self) -> tuple[str, ...]:
        """Names of the classes that the pool's engine has, the most urgent first."""
        return self.engine.batching.class_names


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """How requests are spread, and how pools on one device take turns.

    choice: among the pools whose rules take a request. `first-match`: the first of them; `least-loaded`: the one with
    the fewest live requests for each that it may run at once.
    turns: `time-share`: each pool that has work gets its share of the device's time; `priority`: the pools go in their
    order, but none that has work is passed over more than `max_passed_steps` times before it is due.
    """

    choice: ChoiceName = "first-match"
    turns: TurnName = "time-share"
    max_passed_steps: int = 4

    def __post_init__(self) -> None:
        require_name("RouterSettings.choice", self.choice, get_args(ChoiceName))
        require_name("RouterSettings.turns", self.turns, get_args(TurnName))
        require_at_least("RouterSettings.max_passed_steps", self.max_passed_steps, 1)


def check_pools(pools: Sequence[PoolSettings]) -> None:
    """Raises SettingError unless the pools have unlike names and spill to one another."""
    require(bool(pools), "pools", list(pools), "at least one pool")
    names = [pool.name for pool in pools]
    for position, pool in enumerate(pools):
        require(pool.name not in names[:position], f"pools.{position}.name", pool.name, "a name that no other pool has")
        others = [name for name in names if name != pool.name]
        require(
            pool.spill is None or pool.spill.to in others,
            f"pools.{position}.spill.to",
            pool.spill.to if pool.spill is not None else None,
            f"another pool ({', '.join(others) or 'there is none, so leave spill out'})",
        )
