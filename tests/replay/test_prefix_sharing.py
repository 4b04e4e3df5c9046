"""What prompts promise a prefix cache, against what the engine found, on its own scheduler and by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.replay.plans import MS, plan_of
from tests.replay.request_rows import request_row, request_table

from quantgate.replay.arms import ReplayArm
from quantgate.replay.fidelity import certify
from quantgate.replay.hooks import ReplayHooks
from quantgate.replay.interleave import Cell
from quantgate.replay.prefix_sharing import PrefixCache, prefix_sharing
from quantgate.replay.replay_log import CellResult, ReplayLog
from quantgate.replay.run_replay import ReplayOptions, run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.store.manifest import PrefixSharing, RowsTouched
from quantgate.store.schemas import STEPS
from quantgate.targets.simulated import SimulatedTarget
from quantgate.traces.transform_record import TransformRecord
from quantgate.workload.plan import PlannedRequest, ReplayPlan
from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.simulated import StepCosts
from quantgate_engine.kv.settings import CacheSettings

BLOCK = 8
COSTS = StepCosts(base_ns=MS + 7, per_prefill_token_ns=MS // 10, per_decode_request_ns=MS)


def three_speakers(every_ms: int) -> ReplayPlan:
    """Twelve questions of three speakers behind one system prompt, each longer than the one before, in two blocks."""
    requests = []
    for number in range(12):
        speaker, turn = number % 3, number // 3
        own = range(1000 * (1 + speaker), 1000 * (1 + speaker) + 5 + 11 * turn)
        prompt = (*range(20), *own)
        requests.append(
            PlannedRequest(f"r{number:02d}", number * every_ms * MS, prompt, 4 + turn, block_index=number // 6)
        )
    return plan_of(*requests)


def replayed(plan: ReplayPlan, kv_blocks: int, *, sharing: bool = True) -> ReplayLog:
    log = ReplayLog()
    config = EngineConfig(block_size=BLOCK, num_kv_blocks=kv_blocks, cache=CacheSettings(prefix_sharing=sharing))

    async def main(clock: VirtualClock) -> None:
        target = SimulatedTarget(clock, config=config, costs=COSTS)
        await run_replay(
            plan,
            [ReplayArm("base", "baseline", target)],
            log,
            clock=clock,
            origin_ns=0,
            options=ReplayOptions(passes=2),
            hooks=ReplayHooks(watch_cell=lambda _: target.turn()),
        )

    run_in_virtual_time(main)
    return log


@pytest.mark.parametrize("kv_blocks", [200, 14])
def test_an_engine_that_serves_one_at_a_time_finds_what_is_promised(kv_blocks: int) -> None:
    plan = three_speakers(every_ms=500)
    log = replayed(plan, kv_blocks)
    found = prefix_sharing(log.of_arm("base"), plan.requests, PrefixCache(BLOCK, kv_blocks, enabled=True))
    assert found is not None
    assert (found.requests, found.prompt_tokens) == (24, 2 * plan.prompt_tokens)
    assert found.cached_tokens == found.promised_tokens > 0.3 * found.prompt_tokens
    endless = prefix_sharing(log.of_arm("base"), plan.requests, PrefixCache(BLOCK))
    assert endless is not None
    assert (endless.promised_tokens == found.promised_tokens) == (kv_blocks == 200)


@pytest.mark.parametrize("kv_blocks", [200, 14])
def test_prompts_that_run_at_once_find_what_is_promised_where_the_cache_has_room(kv_blocks: int) -> None:
    plan = three_speakers(every_ms=0)
    cache = PrefixCache(BLOCK, kv_blocks, enabled=True)
    found = prefix_sharing(replayed(plan, kv_blocks).of_arm("base"), plan.requests, cache)
    assert found is not None
    assert (found.cached_tokens == found.promised_tokens) == (kv_blocks == 200)


def test_an_engine_that_does_not_share_keeps_nothing_of_the_promise() -> None:
    plan = three_speakers(every_ms=500)
    log = replayed(plan, 200, sharing=False)
    found = prefix_sharing(log.of_arm("base"), plan.requests, PrefixCache(BLOCK, 200, enabled=False))
    assert found is not None
    assert (found.enabled, found.cached_tokens) == (False, 0)
    assert found.promised_tokens > 0.3 * found.prompt_tokens


def by_hand(*rows: dict[str, Any]) -> list[CellResult]:
    """Each row is a cell of its own."""
    return [
        CellResult(Cell(0, 0, "fp16"), 0, 0, 1, request_table(row), STEPS.empty_table(), wall_ns=1, driver_cpu_ns=None)
        for row in rows
    ]


def one_cell(*rows: dict[str, Any]) -> list[CellResult]:
    table = pa.concat_tables([request_table(row) for row in rows])
    return [CellResult(Cell(0, 0, "fp16"), 0, 0, len(rows), table, STEPS.empty_table(), 1, None)]


PROMPT = tuple(range(40))
REQUESTS = [PlannedRequest(name, 0, PROMPT, 3) for name in "abc"]


def test_only_requests_whose_cached_tokens_are_told_are_compared() -> None:
    cells = one_cell(
        request_row("a", sent_ns=1, cached_prompt_tokens=0, cached_told=True),
        request_row("b", sent_ns=2, cached_prompt_tokens=0, cached_told=False),
        request_row("c", sent_ns=3, cached_prompt_tokens=24, cached_told=True),
    )
    assert prefix_sharing(cells, REQUESTS, PrefixCache()) == PrefixSharing(
        block_tokens=16, cache_blocks=None, enabled=None, requests=2, prompt_tokens=80, promised_tokens=32,
        cached_tokens=24,
    )  # fmt: skip


def test_where_nothing_is_told_the_promise_stands_alone() -> None:
    cells = one_cell(request_row("a", sent_ns=2), request_row("b", sent_ns=1))
    found = prefix_sharing(cells, REQUESTS, PrefixCache())
    assert found is not None
    assert (found.requests, found.promised_tokens, found.cached_tokens) == (2, 32, None)


def test_a_cell_finds_nothing_of_the_one_before() -> None:
    found = prefix_sharing(by_hand(request_row("a"), request_row("b")), REQUESTS, PrefixCache())
    assert found is not None
    assert found.promised_tokens == 0


def test_prompts_without_token_ids_promise_nothing_that_is_known() -> None:
    texts = [PlannedRequest("a", 0, (), 3, prompt_text="Hello", prompt_token_count=20)]
    assert prefix_sharing(one_cell(request_row("a")), texts, PrefixCache()) is None


def test_the_certificate_states_sharing_and_rows_touched_and_judges_neither() -> None:
    cells = one_cell(request_row("a", sent_ns=1, cached_told=True), request_row("b", sent_ns=2, cached_told=True))
    sharing = prefix_sharing(cells, REQUESTS, PrefixCache())
    clip = TransformRecord("clip", {"max_prompt_tokens": 40}, rows_in=5, rows_out=2, rows_touched=4)
    certificate = certify("fp16", cells, requests_intended=2, sharing=sharing, transforms=[clip])
    assert certificate.prefix_sharing == sharing
    assert sharing is not None
    assert sharing.cached_tokens == 0 < sharing.promised_tokens
    assert certificate.rows_touched == [RowsTouched(name="clip", rows_in=5, rows_out=2, rows_touched=4)]
    assert certificate.valid
