"""What a soak looked like over time: one row for each part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quantgate_engine.step_record import StepRecord

MemorySample = tuple[int, float, float]
"""(blocks of Python's allocator, MB that tracemalloc counts, MB resident)."""


@dataclass(frozen=True, slots=True)
class Window:
    """One part of the run. Memory is the least that was seen at its samples: what is there whatever the load is.

    kv_utilization: used slot-time / allocated slot-time; tail_waste: its complement. python_blocks: blocks of memory
    that Python's allocator has handed out since the start; traced_mb: what tracemalloc counts, 0 where it is off.
    """

    ended: int
    steps: int
    virtual_s: float
    kv_utilization: float
    tail_waste: float
    pool_usage: float
    mean_active: float
    mean_waiting: float
    preemptions: int
    recomputed_tokens: int
    cached_prompt_tokens: int
    python_blocks: int
    traced_mb: float
    resident_mb: float


def window_of(
    records: Sequence[StepRecord], ended: int, memory: Sequence[MemorySample], num_blocks: int, block_size: int
) -> Window:
    """The means are over time, not over steps."""
    virtual_ns = sum(record.duration_ns for record in records)

    def over_time(value: Callable[[StepRecord], int]) -> int:
        return sum(value(record) * record.duration_ns for record in records)

    used = over_time(lambda record: record.kv_cache_used_tokens)
    allocated = over_time(lambda record: record.kv_allocated_blocks)
    utilization = used / (allocated * block_size)
    return Window(
        ended=ended,
        steps=len(records),
        virtual_s=round(virtual_ns / 1e9, 3),
        kv_utilization=round(utilization, 4),
        tail_waste=round(1 - utilization, 4),
        pool_usage=round(allocated / (num_blocks * virtual_ns), 4),
        mean_active=round(over_time(lambda record: record.active_requests) / virtual_ns, 1),
        mean_waiting=round(over_time(lambda record: record.waiting_requests) / virtual_ns, 1),
        preemptions=sum(record.preemption_count for record in records),
        recomputed_tokens=sum(record.recomputed_tokens for record in records),
        cached_prompt_tokens=sum(record.cached_prompt_tokens for record in records),
        python_blocks=min(blocks for blocks, _, _ in memory),
        traced_mb=round(min(traced for _, traced, _ in memory), 2),
        resident_mb=round(min(resident for _, _, resident in memory), 1),
    )


def growth(windows: Sequence[Window], of: Callable[[Window], float]) -> float:
    """Least of the last quarter of the run / least of the second quarter; the first one fills caches."""
    quarter = len(windows) // 4
    return min(map(of, windows[-quarter:])) / min(map(of, windows[quarter : 2 * quarter]))
