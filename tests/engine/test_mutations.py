"""Mistakes that engines have made, planted one by one: the random operations must find every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from tests.engine.random_operations import RandomOperations, engine_under_pressure

from quantgate_engine.executor.base import BlockCopy, CopyKind
from quantgate_engine.kv.block_pool import BlockPoolError
from quantgate_engine.kv.block_table import BlockTable
from quantgate_engine.kv.kv_manager import NOTHING_USED, KVManager
from quantgate_engine.kv.prefix_chain import CachedRun, PrefixChain
from quantgate_engine.live_requests import LiveRequests
from quantgate_engine.request import Request, RequestState
from quantgate_engine.scheduler.waiting import WaitingRequests
from quantgate_engine.step_result import StepResult

Plant = Callable[[pytest.MonkeyPatch], None]


def no_reclaim_on_abort(patch: pytest.MonkeyPatch) -> None:
    end = LiveRequests._end

    def leave_the_blocks(self: LiveRequests, request: Request, state: RequestState, result: StepResult) -> None:
        with pytest.MonkeyPatch.context() as inner:
            if state is RequestState.ABORTED:
                inner.setattr(KVManager, "release", lambda *_arguments: NOTHING_USED)
            end(self, request, state, result)

    patch.setattr(LiveRequests, "_end", leave_the_blocks)


def hashes_are_believed(patch: pytest.MonkeyPatch) -> None:
    """Hashes of a few bits, as an attacker would find collisions of longer ones."""

    def believe(self: PrefixChain, run: CachedRun, place: int) -> int:
        self.run, self.num_proved = run, min(run.first + run.count, self.num_blocks)
        return self.num_proved - place

    patch.setattr(PrefixChain, "common", believe)


def no_copy_on_write(patch: pytest.MonkeyPatch) -> None:
    def keep_the_block(self: KVManager, _owner: str, table: BlockTable) -> None:
        table.tail_is_foreign = False
        self._owed_blocks -= 1

    patch.setattr(KVManager, "_copy_tail", keep_the_block)


def copies_are_not_carried_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KVManager, "take_copies", lambda self: self._copies.clear() or ())


def no_ageing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WaitingRequests, "has_aged", lambda _self, _request: False)


def a_preempted_request_loses_its_last_token(patch: pytest.MonkeyPatch) -> None:
    """As nano-vllm#217 did."""
    tokens_between = Request.tokens_between

    def one_late(self: Request, start: int, stop: int) -> tuple[int, ...]:
        late = bool(self.preemptions) and start > 0
        return tokens_between(self, start - late, stop - late)

    patch.setattr(Request, "tokens_between", one_late)


def swaps_go_to_the_wrong_slot(patch: pytest.MonkeyPatch) -> None:
    take_copies = KVManager.take_copies

    def shifted(self: KVManager) -> tuple[BlockCopy, ...]:
        slots = self.host.num_slots
        return tuple(
            BlockCopy(copy.request_id, copy.kind, (copy.source + 1) % slots, copy.target)
            if copy.kind is CopyKind.SWAP_IN
            else copy
            for copy in take_copies(self)
        )

    patch.setattr(KVManager, "take_copies", shifted)


MISTAKES: list[Plant] = [
    no_reclaim_on_abort,
    hashes_are_believed,
    no_copy_on_write,
    copies_are_not_carried_out,
    no_ageing,
    a_preempted_request_loses_its_last_token,
    swaps_go_to_the_wrong_slot,
]


def _operate(seeds: Iterable[int]) -> None:
    for seed in seeds:
        _operate_once(seed)


def _operate_once(seed: int) -> None:
    engine = engine_under_pressure("swap", "last-in")
    engine.core._kv.prefixes._digest = lambda data: bytes([sum(data) % 7])
    operations = RandomOperations(engine, seed)
    operations.run(800)
    operations.drain()


def test_without_a_mistake_nothing_is_found() -> None:
    _operate(range(5))


@pytest.mark.parametrize("plant", MISTAKES)
def test_each_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, BlockPoolError)):
        _operate(range(5))
