"""What one engine step did: the row of the step log."""

from __future__ import annotations

from typing import NamedTuple


class StepRecord(NamedTuple):
    """One step of the engine; times are nanoseconds of the engine's clock, counts are of this step alone.

    `pool` is set where several engines work behind a router: whose step it was.
    """

    # A tuple, because one is made after each step, whose weights have swept the processor's caches: fields that are set
    # one by one take three times as long then.

    step_index: int
    started_ns: int
    duration_ns: int
    batch_size_prefill: int
    batch_size_decode: int
    prefill_tokens: int
    decode_tokens: int
    context_tokens: int
    active_requests: int
    waiting_requests: int
    kv_cache_used_tokens: int
    kv_allocated_blocks: int
    kv_cache_block_utilization: float
    recomputed_tokens: int
    cached_prompt_tokens: int
    preemption_count: int
    request_abort_count: int
    rejected_count: int
    oom_count: int
    pool: str | None = None
