"""What is compared: an engine, or pools of engines, under one traffic; rows of a table differ in one setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.practice_figures import Figures
from benchmarks.practice_traffic import Traffic

from quantgate_engine.config import EngineConfig
from quantgate_engine.router.settings import PoolSettings, RouterSettings
from quantgate_engine.scheduler.slo_class import SLOClass

BLOCK_TOKENS = 16

PATIENT_CLASSES = (SLOClass("interactive", max_wait_s=20.0), SLOClass("batch", max_wait_s=60.0))
"""Waits so long that order of arrival does not take over within a burst: else classes and buckets would not matter."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is measured; rows of several tables that are equal in this are measured once.

    pools: a lone engine is a pool by itself, so that every row goes through the same router.
    shared_device: false gives each pool a device of its own, which only the simulator has.
    """

    traffic: Traffic
    pools: tuple[PoolSettings, ...]
    router: RouterSettings = field(default_factory=RouterSettings)
    shared_device: bool = True


@dataclass(frozen=True, slots=True)
class Column:
    """`figure` of the requests of `group`, or of the engine; form: how it is printed."""

    title: str
    group: str
    figure: str
    form: str = ",.0f"


Conclude = Callable[[Mapping[str, Figures]], Mapping[str, float | None]]
"""Figures by row -> what follows from several rows together, by its name in words."""


@dataclass(frozen=True, slots=True)
class PracticeTable:
    """One question, asked as rows that differ in one setting."""

    question: str
    rows: Mapping[str, Setup]
    columns: Sequence[Column]
    conclude: Conclude | None = None

    @property
    def needs_several_devices(self) -> bool:
        return not all(setup.shared_device for setup in self.rows.values())


def one_engine(traffic: Traffic, engine: EngineConfig) -> Setup:
    return Setup(traffic, (PoolSettings("engine", engine),))


def engine_of(
    context_tokens: int,
    *,
    active: int = 16,
    step_tokens: int = 256,
    pool_tokens: int | None = None,
    block_size: int = BLOCK_TOKENS,
) -> EngineConfig:
    """The engine's defaults with a pool of `pool_tokens` slots; None: room for every active request's whole context."""
    slots = active * context_tokens if pool_tokens is None else pool_tokens
    return EngineConfig(
        max_active_requests=active,
        max_step_tokens=step_tokens,
        block_size=block_size,
        max_context_tokens=context_tokens,
        num_kv_blocks=slots // block_size,
    )
