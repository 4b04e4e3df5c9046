"""One of several engines behind a router, as those see it who watch from outside."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.step_result import StepLoad


@dataclass(frozen=True, slots=True)
class PoolState:
    """A pool's sizes and its queues and cache as they stand.

    takes: its rule, in words. max_sequence_tokens: prompt plus output of the longest request that it can ever run.
    """

    takes: str
    slo_classes: tuple[str, ...]
    max_active_requests: int
    max_sequence_tokens: int
    block_size: int
    num_kv_blocks: int
    load: StepLoad
