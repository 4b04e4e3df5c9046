"""Who gives way when blocks run out, how, what it costs, and that everything comes to its end all the same."""

from __future__ import annotations

import pytest
from tests.engine.cached_engine import CachedEngine
from tests.engine.simulation import prompt

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.base import CopyKind
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.outputs import end_of
from quantgate_engine.request import AbortCause, Request, RequestState
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings
from quantgate_engine.scheduler.preemption.victims import VICTIM_POLICIES, choose_victim

OPTIMISTIC = AdmissionSettings(estimator="optimistic")
SWAP = PreemptionSettings(mode="swap", host_blocks=16)


def _pressed(preemption: PreemptionSettings, num_blocks: int = 8, **settings: object) -> CachedEngine:
    """Four requests of 7 blocks each in a pool of about a quarter of that."""
    engine = CachedEngine(num_blocks=num_blocks, admission=OPTIMISTIC, preemption=preemption, **settings)
    for i in range(4):
        engine.add(f"r{i}", prompt(8, i * 100), max_tokens=20, seed=i)
    return engine


@pytest.mark.parametrize("victim", VICTIM_POLICIES)
@pytest.mark.parametrize("mode", ["recompute", "swap"])
@pytest.mark.parametrize("sharing", [False, True])
def test_a_pool_of_a_quarter_of_the_demand_finishes_everything(victim: str, mode: str, sharing: bool) -> None:
    preemption = PreemptionSettings(mode=mode, victim=victim, host_blocks=16 if mode == "swap" else 0)
    engine = _pressed(preemption, cache=CacheSettings(prefix_sharing=sharing))
    ended = engine.run()
    assert {request.state for request in ended.values()} == {RequestState.FINISHED}
    assert [len(request.output) for request in ended.values()] == [20] * 4
    totals = engine.core.totals
    assert totals.oom_count == 0
    assert totals.preemption_count == sum(request.preemptions for request in ended.values()) > 0
    assert totals.recomputed_tokens == sum(request.recomputed_tokens for request in ended.values())
    assert engine.core.held_blocks == 0
    if mode == "swap":
        assert totals.recomputed_tokens == 0
    elif not sharing:
        assert totals.recomputed_tokens > 0
        assert 0 < totals.recompute_tax < 1
        # Everything that was computed is either needed once or was computed again.
        needed = 4 * (8 + 20 - 1)
        assert totals.prefill_tokens + totals.decode_tokens == needed + totals.recomputed_tokens


def test_recompute_by_hand() -> None:
    engine = CachedEngine(num_blocks=4, admission=OPTIMISTIC)
    engine.add("old", prompt(7), max_tokens=6)
    new = engine.add("new", prompt(7, 50), max_tokens=6)
    engine.step(2)
    # Both fill their second block in the second step; in the third old needs a third block, and new was let in last.
    engine.step()
    assert (new.state, new.preemptions, new.num_computed_tokens) == (RequestState.WAITING, 1, 0)
    assert engine.core.take_steps()[2].preemption_count == 1
    ended = engine.run()
    # It comes back when old is done, with its 7 prompt tokens and the first drawn one computed for the second time.
    assert (ended["new"].recomputed_tokens, ended["old"].preemptions) == (8, 0)
    assert end_of(ended["new"]).recomputed_tokens == 8
    assert engine.core.totals.recompute_tax == 8 / (12 + 12 + 8)
    assert ended["new"].first_token_ns == ended["old"].first_token_ns


def test_swap_moves_blocks_out_and_in_again() -> None:
    engine = CachedEngine(num_blocks=4, admission=OPTIMISTIC, preemption=SWAP)
    engine.add("old", prompt(7), max_tokens=6)
    engine.add("new", prompt(7, 50), max_tokens=6)
    engine.step(3)
    assert engine.core._kv.host.num_held == 2
    assert [holding.kind for holding in engine.core.kv_holdings()] == ["request", "swapped"]
    ended = engine.run()
    assert (ended["new"].recomputed_tokens, ended["new"].preemptions) == (0, 1)
    assert engine.core._kv.host.num_held == 0
    kinds = [(copy.request_id, copy.kind) for copy in engine.executor.copies]
    assert kinds == [("new", CopyKind.SWAP_OUT)] * 2 + [("new", CopyKind.SWAP_IN)] * 2


def test_a_full_host_makes_the_victim_recompute() -> None:
    engine = CachedEngine(num_blocks=4, admission=OPTIMISTIC, preemption=PreemptionSettings(mode="swap", host_blocks=1))
    engine.add("old", prompt(7), max_tokens=6)
    engine.add("new", prompt(7, 50), max_tokens=6)
    assert engine.run()["new"].recomputed_tokens == 8
    assert engine.executor.copies == []


@pytest.mark.parametrize("cause", list(AbortCause))
def test_an_abort_while_swapped_out_frees_the_host(cause: AbortCause) -> None:
    engine = CachedEngine(num_blocks=4, admission=OPTIMISTIC, preemption=SWAP)
    engine.add("old", prompt(7), max_tokens=6)
    engine.add("new", prompt(7, 50), max_tokens=6)
    engine.step(3)
    engine.core.abort("new", cause)
    assert engine.step() == ["new"]
    assert engine.core._kv.host.num_held == 0
    assert engine.core.aborts_by_cause == {cause: 1}


def test_a_preempted_request_that_has_all_it_wants_finishes_where_it_stands() -> None:
    engine = CachedEngine(num_blocks=4, admission=OPTIMISTIC, preemption=SWAP)
    engine.add("old", prompt(7), max_tokens=6)
    engine.add("new", prompt(7, 50), max_tokens=6)
    engine.step(3)
    engine.core.finish("new")
    assert engine.step() == ["new"]
    assert engine.ended["new"].state is RequestState.FINISHED
    assert engine.core._kv.host.num_held == 0


def test_block_seconds_add_up_over_the_stays_and_the_peak_is_the_greatest() -> None:
    engine = CachedEngine(num_blocks=4, admission=OPTIMISTIC)
    engine.add("old", prompt(7), max_tokens=6)
    engine.add("new", prompt(7, 50), max_tokens=6)
    ended = engine.run()
    records = engine.core.take_steps()
    area = sum(record.kv_allocated_blocks * record.duration_ns for record in records) / 1e9
    total = sum(request.kv_block_seconds for request in ended.values())
    assert total == pytest.approx(area)
    assert [request.kv_peak_blocks for request in ended.values()] == [3, 3]


def _running(*shapes: tuple[str, int, int, int]) -> list[Request]:
    """(name, admission number, computed tokens, preemptions); ranks are the places in the list."""
    requests = []
    for rank, (name, admission, computed, preemptions) in enumerate(shapes):
        request = Request(name, prompt(9), SamplingParams(), arrived_ns=0, rank=rank)
        request.admission_number, request.num_computed_tokens = admission, computed
        request.preemptions = preemptions
        requests.append(request)
    return requests


@pytest.mark.parametrize(("policy", "victim"), [("last-in", "c"), ("least-computed", "b"), ("lowest-class", "d")])
def test_each_policy_by_hand(policy: str, victim: str) -> None:
    running = _running(("a", 1, 50, 0), ("b", 2, 5, 0), ("c", 4, 20, 0), ("d", 3, 30, 0))
    chosen = choose_victim(running, VICTIM_POLICIES[policy], lambda request: int(request.request_id == "d"), 4)
    assert chosen.request_id == victim


@pytest.mark.parametrize("policy", VICTIM_POLICIES)
def test_who_was_preempted_too_often_is_spared_and_where_all_were_the_oldest_goes_on(policy: str) -> None:
    running = _running(("a", 9, 1, 4), ("b", 2, 50, 0), ("c", 8, 2, 4))
    assert choose_victim(running, VICTIM_POLICIES[policy], lambda _request: 0, 4).request_id == "b"
    running[1].preemptions = 7
    assert choose_victim(running, VICTIM_POLICIES[policy], lambda _request: 0, 4).request_id == "c"


def test_a_batch_request_gives_way_to_interactive_ones_only_so_often() -> None:
    preemption = PreemptionSettings(victim="lowest-class", max_preemptions=2)
    engine = CachedEngine(num_blocks=6, admission=OPTIMISTIC, preemption=preemption, max_active_requests=2)
    engine.add("batch", prompt(8), max_tokens=12, terms=RequestTerms(slo_class="batch"))
    for i in range(12):
        engine.add(f"chat-{i}", prompt(8, 30 * i), max_tokens=12)
    ended = engine.run()
    assert ended["batch"].preemptions <= 3
    order = sorted(ended.values(), key=lambda request: request.finished_ns or 0)
    assert [request.request_id for request in order].index("batch") < 8


def test_a_preempted_request_keeps_its_rank() -> None:
    engine = CachedEngine(num_blocks=4, admission=OPTIMISTIC)
    engine.add("old", prompt(7), max_tokens=6)
    new = engine.add("new", prompt(7, 50), max_tokens=6)
    engine.step(2)
    late = engine.add("late", prompt(7, 70), max_tokens=2)
    engine.run()
    assert new.preemptions == 1
    assert (new.finished_ns or 0) <= (late.finished_ns or 0)


def test_a_preempted_request_that_finds_its_own_prefix_again_does_not_compute_it_again() -> None:
    engine = CachedEngine(num_blocks=5, admission=OPTIMISTIC, cache=CacheSettings(prefix_sharing=True))
    engine.add("old", prompt(7), max_tokens=3)
    new = engine.add("new", prompt(11, 50), max_tokens=6)
    engine.run()
    assert new.preemptions == 1
    # 11 prompt tokens were computed; the 8 in whole blocks are found again, so 3 are computed a second time. They are
    # its own work, not something that it was spared: they do not count as cached.
    assert (new.recomputed_tokens, new.cached_prompt_tokens) == (3, 0)


def test_a_failing_copy_ends_those_whose_blocks_it_moved_and_no_others() -> None:
    engine = CachedEngine(num_blocks=4, admission=OPTIMISTIC, preemption=SWAP)
    engine.add("old", prompt(7), max_tokens=6)
    engine.add("new", prompt(7, 50), max_tokens=6)
    engine.add("later", prompt(7, 90), max_tokens=6)
    engine.step(2)

    def fail(_copies: object) -> None:
        raise MemoryError("host memory is gone")

    engine.executor.copy_blocks = fail
    assert set(engine.step()) == {"old", "new"}
    assert engine.ended["new"].error == "MemoryError: host memory is gone"
    assert engine.core.totals.oom_count == 1
    assert engine.core._kv.host.num_held == 0
    assert engine.run()["later"].state is RequestState.FINISHED


def test_swap_without_host_memory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="host_blocks is 0; expected at least 1 where the mode is `swap`"):
        PreemptionSettings(mode="swap")
    with pytest.raises(ConfigurationError, match="victim is 'oldest'; expected one of last-in, least-computed, lowest"):
        PreemptionSettings(victim="oldest")
