"""Tables of the router: pools by class and by length, against engines that take everything."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.practice_chunks import among_long_prompts, engine_for_long_prompts
from benchmarks.practice_columns import BUSY, GOODPUT, THROUGHPUT, ttft
from benchmarks.practice_setups import PATIENT_CLASSES, Column, PracticeTable, Setup, engine_of, one_engine
from benchmarks.practice_traffic import CONTEXT_TOKENS, Traffic

from quantgate_engine.config import EngineConfig
from quantgate_engine.router.settings import PoolRule, PoolSettings, RouterSettings, TokenRange
from quantgate_engine.scheduler.batching.settings import BatchingSettings

_BY_CLASS_COLUMNS = (
    *ttft("interactive"),
    Column("interactive: gap p99 ms", "interactive", "gap_p99_ms"),
    Column("interactive: met", "interactive", "slo_attainment", ".1%"),
    *ttft("batch", 50, 99),
    GOODPUT,
    BUSY,
)


def pools_by_class(traffic: Traffic) -> PracticeTable:
    """The same device and the same KV memory: what differs is who shares a step with whom."""
    return PracticeTable(
        "A pool for each class against one engine with two classes, on one device",
        {
            "one engine": one_engine(traffic, _engine(24)),
            "two pools, 3 : 1 for interactive": Setup(traffic, _by_class(_engine(16), _engine(8, 512), share=3.0)),
            "9 : 1, and short batch steps": Setup(traffic, _by_class(_engine(20), _engine(4, 64), share=9.0)),
        },
        _BY_CLASS_COLUMNS,
    )


def pools_by_length(traffic: Traffic) -> PracticeTable:
    """The traffic and the engine of the table of chunked prefill; its long prompts get a pool of their own."""
    mixed = among_long_prompts(traffic)

    def by_length(share: float) -> Setup:
        short = PoolRule(prompt_tokens=TokenRange(most=CONTEXT_TOKENS))
        long = PoolRule(prompt_tokens=TokenRange(least=CONTEXT_TOKENS + 1))
        pools = (
            PoolSettings("short", engine_of(CONTEXT_TOKENS, active=14), short, share),
            PoolSettings("long", engine_for_long_prompts(traffic, active=2), long),
        )
        return Setup(mixed, pools)

    return PracticeTable(
        "A pool for long prompts against one engine for all, on one device",
        {
            "one engine": one_engine(mixed, engine_for_long_prompts(traffic)),
            "two pools, equal shares": by_length(share=1.0),
            "two pools, 3 : 1 for short": by_length(share=3.0),
        },
        (*ttft("others"), Column("others: gap p99 ms", "others", "gap_p99_ms"), *ttft("long", 50, 99), THROUGHPUT),
    )


def pools_on_two_devices(traffic: Traffic) -> PracticeTable:
    """Twice the rate for twice the devices."""
    doubled = replace(traffic, requests_per_s=2 * traffic.requests_per_s)
    alike = tuple(PoolSettings(name, _engine(16)) for name in ("first", "second"))
    least_loaded = RouterSettings(choice="least-loaded")
    return PracticeTable(
        "A pool for each class against two engines alike, each on a device of its own",
        {
            "two alike, the least loaded": Setup(doubled, alike, least_loaded, shared_device=False),
            "a pool for each class": Setup(doubled, _by_class(_engine(16), _engine(16, 512)), shared_device=False),
        },
        _BY_CLASS_COLUMNS,
    )


def _by_class(interactive: EngineConfig, batch: EngineConfig, share: float = 1.0) -> tuple[PoolSettings, ...]:
    """share: the interactive pool's part of a device that both have, to 1 for the batch pool."""
    return (
        PoolSettings("low latency", interactive, PoolRule(slo_classes=("interactive",)), share),
        PoolSettings("high throughput", batch, PoolRule(slo_classes=("batch",))),
    )


def _engine(active: int, step_tokens: int = 256) -> EngineConfig:
    engine = engine_of(CONTEXT_TOKENS, active=active, step_tokens=step_tokens)
    return replace(engine, batching=BatchingSettings(slo_classes=PATIENT_CLASSES))
