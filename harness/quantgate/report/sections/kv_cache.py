"""How each arm's KV cache was used: how full its blocks were, what had to give way, and who held most of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from quantgate.metrics.columns import NS_PER_S, floats, is_equal
from quantgate.metrics.pool_totals import over_pools, pool_names
from quantgate.metrics.registry import step_metric
from quantgate.report.figures import Table
from quantgate.report.numbers import count, percent, seconds, significant, size
from quantgate.report.run_view import ArmView, RunView, texts
from quantgate_engine.kv.holding import HoldingLimits, KVHolding, long_holders

MOST_HOLDERS = 5
"""Of each arm, those with the most block-seconds."""


@dataclass(frozen=True)
class KVCacheSection:
    """holders: requests that held far more of the cache than the others, or for long; None where there is none.

    has_pools: whether some arm's row is followed by those of its pools, each alone.
    """

    table: Table
    holders: Table | None
    has_pools: bool


def kv_cache_section(view: RunView) -> KVCacheSection | None:
    """None where no arm has a step log."""
    arms = [arm for arm in view.arms if arm.steps.num_rows]
    if not arms:
        return None
    headers = ["arm", "stored as", "a token takes", "most blocks", "utilization", "tail waste", "preemptions",
               "recompute tax", "prompt tokens from the cache"]  # fmt: skip
    holders = [row for arm in arms for row in _holders(arm)]
    return KVCacheSection(
        table=Table(headers, [row for arm in arms for row in _rows(arm)]),
        has_pools=any(pool_names(arm.steps) for arm in arms),
        holders=Table(["holder", "arm", "most blocks", "held for", "block-seconds", "finding"], holders)
        if holders
        else None,
    )


def _rows(arm: ArmView) -> list[list[str]]:
    """The arm as a whole, and each of its pools."""
    by_pool = [
        _row(arm, f"{arm.arm_id}, pool {pool}", arm.steps.filter(pa.array(is_equal(arm.steps, "pool", pool))))
        for pool in pool_names(arm.steps)
    ]
    return [_row(arm, arm.arm_id, arm.steps), *by_pool]


def _row(arm: ArmView, title: str, steps: pa.Table) -> list[str]:
    shares = ("kv_utilization", "tail_waste", "recompute_tax", "cached_prompt_share")
    utilization, waste, tax, cached = (percent(step_metric(name)(steps)) for name in shares)
    blocks = over_pools(steps, floats(steps, "kv_allocated_blocks"))
    preemptions = count(int(floats(steps, "preemption_count").sum()))
    manifest = arm.manifest
    return [
        title, manifest.kv_dtype, size(manifest.kv_bytes_per_token), count(int(blocks.max())), utilization, waste,
        preemptions, tax, cached,
    ]  # fmt: skip


def _holders(arm: ArmView) -> list[list[str]]:
    """Requests, and sessions between their turns; an A/A arm's engine is the baseline's, whose sessions it shows."""
    sessions = [] if arm.role == "aa" else [KVHolding(**stay.model_dump()) for stay in arm.manifest.kv_sessions]
    found = long_holders([*_requests(arm), *sessions], HoldingLimits())
    return [
        [
            f"session {each.holding.holder}" if each.holding.kind == "session" else each.holding.holder,
            arm.arm_id,
            count(each.holding.blocks),
            seconds(each.holding.held_seconds),
            significant(each.holding.block_seconds),
            "; ".join(each.reasons),
        ]
        for each in sorted(found, key=lambda each: -each.holding.block_seconds)[:MOST_HOLDERS]
    ]


def _requests(arm: ArmView) -> list[KVHolding]:
    requests = arm.requests
    held = (floats(requests, "ended_ns") - floats(requests, "admitted_ns")) / NS_PER_S
    blocks, block_seconds = floats(requests, "kv_peak_blocks"), floats(requests, "kv_block_seconds")
    return [
        KVHolding(request_id, "request", int(blocks[row]), float(held[row]), float(block_seconds[row]))
        for row, request_id in enumerate(texts(requests, "request_id"))
        if blocks[row] > 0 and np.isfinite(held[row])
    ]
