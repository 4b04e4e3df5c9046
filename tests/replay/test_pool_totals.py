"""States of pools added up by hand, from a log in which each row tells of one pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.replay.request_rows import step_table

from quantgate.metrics.columns import floats
from quantgate.metrics.pool_totals import over_pools, pool_names
from quantgate.metrics.registry import step_metric


def step(pool: str | None, used: int, **columns: Any) -> dict[str, Any]:
    """A step that decodes, so that its pool had work before it; a block has 10 slots, and all in use are full."""
    blocks = {"kv_allocated_blocks": -(-used // 10), "kv_cache_block_utilization": 1.0 if used else 0.0}
    return {"pool": pool, "kv_cache_used_tokens": used, "decode_tokens": 1, "duration_ns": 1} | blocks | columns


def used(*steps: dict[str, Any]) -> list[float]:
    table = step_table(*steps)
    return over_pools(table, floats(table, "kv_cache_used_tokens")).tolist()


def test_without_pools_states_are_those_of_the_one_engine() -> None:
    assert pool_names(step_table(step(None, 5))) == []
    assert used(step(None, 5), step(None, 7)) == [5, 7]


def test_a_pool_stays_as_it_was_while_another_steps() -> None:
    assert used(step("a", 100), step("b", 30), step("b", 40), step("a", 110), step("b", 50)) == [100, 130, 140, 150, 50]


def test_a_pool_that_ended_its_work_holds_nothing_until_it_gets_more() -> None:
    new = {"decode_tokens": 0, "prefill_tokens": 20, "cached_prompt_tokens": 5}
    steps = [step("a", 100), step("b", 30), step("a", 25, **new), step("b", 40), step("b", 50)]
    assert used(*steps) == [100, 30, 55, 40, 50]


@pytest.mark.parametrize("sign", [{"waiting_requests": 1}, {}])
def test_a_prompt_in_chunks_is_work_between_them(sign: dict[str, Any]) -> None:
    first, second = {"decode_tokens": 0, "prefill_tokens": 20}, {"decode_tokens": 0, "prefill_tokens": 20}
    held = 20 if sign else 40
    assert used(step("a", 20, **first, **sign), step("b", 30), step("a", held, **second))[1] == 50


def test_a_turn_knows_nothing_of_the_one_before() -> None:
    steps = [step("a", 100), step("b", 30), step("b", 40, block_index=1), step("a", 60, block_index=1)]
    assert used(*steps) == [100, 30, 40, 60]


def test_a_step_of_no_pool_tells_of_them_all() -> None:
    nothing = {"duration_ns": 0, "decode_tokens": 0, "rejected_count": 1}
    assert used(step("a", 100), step(None, 0, **nothing), step("a", 110)) == [100, 100, 110]


def test_utilization_is_used_slots_over_allocated_slots_of_all_pools() -> None:
    steps = step_table(
        step("a", 40, kv_allocated_blocks=10, kv_cache_block_utilization=0.4, duration_ns=3),
        step("b", 64, kv_allocated_blocks=2, kv_cache_block_utilization=1.0, duration_ns=2),
        step("a", 60, kv_allocated_blocks=10, kv_cache_block_utilization=0.6, duration_ns=1),
    )
    # Blocks of 10 and of 32 slots; pool b ends with its only step.
    expected = (40 * 3 + (40 + 64) * 2 + 60) / (100 * 3 + (100 + 64) * 2 + 100)
    utilization = step_metric("kv_utilization")(steps)
    assert utilization == pytest.approx(expected)
    assert step_metric("tail_waste")(steps) == pytest.approx(1 - expected)
    assert not np.isnan(expected)
