"""Tables of practices of one engine: what each is compared with, all else equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.practice_chunks import chunked_prefill
from benchmarks.practice_columns import (
    BUSY,
    GAP,
    GOODPUT,
    MEAN_ACTIVE,
    PEAK_ACTIVE,
    PREEMPTIONS,
    RECOMPUTE_TAX,
    THROUGHPUT,
    UTILIZATION,
    ttft,
)
from benchmarks.practice_figures import ENGINE
from benchmarks.practice_pools import pools_by_class, pools_by_length, pools_on_two_devices
from benchmarks.practice_setups import PATIENT_CLASSES, Column, PracticeTable, Setup, engine_of, one_engine
from benchmarks.practice_traffic import CONTEXT_TOKENS, Traffic

from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.batching.settings import BatchingSettings

# The most urgent class alone: the engine schedules requests of classes that it does not have in its first one.
_ONE_QUEUE = BatchingSettings(slo_classes=PATIENT_CLASSES[:1], length_buckets=())


def batching(traffic: Traffic) -> PracticeTable:
    return PracticeTable(
        "Continuous against static batching, and mixed against split steps",
        {
            "static": _batched(traffic, BatchingSettings(mode="static")),
            "continuous, split steps": _batched(traffic, BatchingSettings(mode="split")),
            "continuous, mixed steps": _batched(traffic, BatchingSettings(mode="mixed")),
        },
        (THROUGHPUT, BUSY, *ttft(), GAP, GOODPUT, MEAN_ACTIVE, PEAK_ACTIVE),
    )


def length_buckets(traffic: Traffic) -> PracticeTable:
    buckets = replace(_ONE_QUEUE, length_buckets=(32, 64, 128))
    return PracticeTable(
        "Shorter prompts first, against one queue",
        {"one queue": _batched(traffic, _ONE_QUEUE), "buckets to 32, 64, 128 and above": _batched(traffic, buckets)},
        (*ttft(), *ttft("chat", 50, 99), *ttft("documents", 50, 99), GOODPUT, THROUGHPUT),
    )


def slo_classes(traffic: Traffic) -> PracticeTable:
    return PracticeTable(
        "Interactive requests before batch ones, against one queue",
        {
            "one queue": _batched(traffic, _ONE_QUEUE),
            "two classes": _batched(traffic, replace(_ONE_QUEUE, slo_classes=PATIENT_CLASSES)),
        },
        (
            *ttft("interactive"),
            Column("interactive: met", "interactive", "slo_attainment", ".1%"),
            *ttft("batch", 50, 99),
            GOODPUT,
            THROUGHPUT,
        ),
    )


def block_sizes(traffic: Traffic) -> PracticeTable:
    """The pool has the slots of four whole contexts, so that what a block wastes is missed by the next request."""
    slots = 4 * CONTEXT_TOKENS

    def blocks_of(size: int) -> Setup:
        engine = engine_of(CONTEXT_TOKENS, active=32, pool_tokens=slots, block_size=size)
        return one_engine(traffic, replace(engine, admission=AdmissionSettings(estimator="optimistic")))

    return PracticeTable(
        f"Sizes of KV blocks, in a pool of {slots:,} slots; a slab is a block for the longest context",
        {f"blocks of {size}": blocks_of(size) for size in (8, 16, 32, 64)} | {"a slab each": blocks_of(CONTEXT_TOKENS)},
        (
            UTILIZATION,
            Column("tail waste", ENGINE, "tail_waste", ".1%"),
            MEAN_ACTIVE,
            PEAK_ACTIVE,
            PREEMPTIONS,
            RECOMPUTE_TAX,
            THROUGHPUT,
            *ttft(),
            GAP,
        ),
    )


def _batched(traffic: Traffic, settings: BatchingSettings) -> Setup:
    return one_engine(traffic, replace(engine_of(CONTEXT_TOKENS), batching=settings))


TABLES: Mapping[str, Callable[[Traffic], PracticeTable]] = {
    "batching": batching,
    "chunked-prefill": chunked_prefill,
    "length-buckets": length_buckets,
    "slo-classes": slo_classes,
    "pools-by-class": pools_by_class,
    "pools-by-length": pools_by_length,
    "pools-on-two-devices": pools_on_two_devices,
    "block-sizes": block_sizes,
}
