"""How pools share a device."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from tests.engine.pools import Pools, bulk, engine, fast

from quantgate_engine.router.pool import Pool
from quantgate_engine.router.settings import PoolSettings, RouterSettings, TurnName
from quantgate_engine.router.turns import TURN_POLICIES, TurnPolicy


def _pools(*settings: PoolSettings) -> tuple[Pool, ...]:
    return Pools(*settings).core.pools


def _turns(policy: TurnPolicy, pools: tuple[Pool, ...], durations: dict[str, int], count: int) -> str:
    """The first letters of the pools that go next, all of them having work."""
    names = []
    for _ in range(count):
        pool = policy.next(pools)
        policy.used(pool, durations[pool.name])
        names.append(pool.name[0])
    return "".join(names)


def test_equal_shares_give_a_pool_of_long_steps_fewer_of_them() -> None:
    # Tags: f 10, b 40, f 20, f 30, f 40, then f is the first of two that are alike.
    pools = _pools(fast(), bulk())
    turns = _turns(TURN_POLICIES["time-share"](RouterSettings()), pools, {"fast": 10, "bulk": 40}, 12)
    assert turns == "fbffffbffffb"


def test_a_larger_share_is_more_time() -> None:
    # Tags: f 10, b 10, f 20, b 20: a step of 30 for a share of 3 counts as much as one of 10 for a share of 1.
    pools = _pools(fast(), bulk(share=3.0))
    turns = _turns(TURN_POLICIES["time-share"](RouterSettings()), pools, {"fast": 10, "bulk": 30}, 6)
    assert turns == "fbfbfb"


def test_a_pool_that_was_idle_goes_next_and_has_saved_up_nothing() -> None:
    pools = _pools(bulk(), fast())
    policy = TURN_POLICIES["time-share"](RouterSettings())
    _turns(policy, pools[:1], {"bulk": 40}, 25)
    turns = _turns(policy, pools, {"bulk": 40, "fast": 10}, 12)
    # The last of the 25 steps began at tag 960 and left 1000: the other pool starts at 960, not at 0.
    assert turns == "ffffbffffbff"


def test_priority_lets_a_later_pool_go_when_it_was_passed_over_too_often() -> None:
    pools = _pools(fast("a"), bulk("b"), bulk("c"))
    policy = TURN_POLICIES["priority"](RouterSettings(turns="priority", max_passed_steps=2))
    durations = dict.fromkeys("abc", 1)
    assert _turns(policy, pools, durations, 8) == "aabcabca"
    # Who has nothing to do is not passed over.
    assert _turns(policy, pools[:1], durations, 5) == "aaaaa"
    assert _turns(policy, pools, durations, 3) == "aab"


@pytest.mark.parametrize("turns", ["time-share", "priority"])
def test_what_was_before_a_rest_decides_nothing_after_it(turns: TurnName) -> None:
    def order(pools: Pools) -> list[str | None]:
        pools.core.take_steps()
        for i in range(4):
            pools.add(f"f{i}", 8, 20, slo_class="interactive")
            pools.add(f"b{i}", 40, 60, slo_class="batch")
        pools.run()
        return [record.pool for record in pools.core.take_steps()]

    settings = RouterSettings(turns=turns, max_passed_steps=3)
    new, rested = Pools(fast(), bulk(), settings=settings), Pools(fast(), bulk(), settings=settings)
    # The last to run before the rest has had the device alone for long.
    rested.add("before", 8, 200, slo_class="interactive")
    rested.add("beside", 40, 3, slo_class="batch")
    rested.run()
    assert order(rested) == order(new)


@pytest.mark.parametrize("share", [1.0, 3.0])
def test_the_devices_time_goes_by_the_shares_while_both_have_work(share: float) -> None:
    pools = Pools(fast(share=share), bulk())
    for i in range(40):
        pools.add(f"f{i}", 8, 20, slo_class="interactive")
        pools.add(f"b{i}", 40, 60, slo_class="batch")
    pools.run_until(300_000)
    records = pools.core.take_steps()
    used: Counter[str] = Counter()
    for record in records:
        used[str(record.pool)] += record.duration_ns
    longest = max(record.duration_ns for record in records)
    assert abs(used["fast"] - share * used["bulk"]) <= (1 + share) * longest
    assert records[-1].waiting_requests > 0


def test_on_one_device_steps_do_not_overlap_and_on_two_they_do() -> None:
    for shared in (True, False):
        pools = Pools(fast(), bulk(), shared_device=shared)
        for i in range(6):
            pools.add(f"f{i}", 8, 20)
            pools.add(f"b{i}", 40, 20, slo_class="batch")
        pools.run()
        steps = sorted((record.started_ns, record.duration_ns) for record in pools.core.take_steps())
        overlap = any(start + duration > later for (start, duration), (later, _) in itertools.pairwise(steps))
        assert overlap is not shared


def test_a_device_of_its_own_keeps_a_pool_from_waiting_for_another() -> None:
    took = {}
    for shared in (True, False):
        pools = Pools(fast(), bulk(engine=engine(max_active_requests=8, max_step_tokens=200)), shared_device=shared)
        pools.add("b", 200, 20, slo_class="batch")
        pools.run_for(1)
        pools.add("f", 4, 1)
        pools.run()
        [request] = [request for request in pools.ended if request.request_id == "f"]
        assert request.finished_ns is not None
        took[shared] = request.finished_ns - request.arrived_ns
    # A prefill of four tokens; and, on the shared device, first the rest of the step that was under way.
    assert took == {False: 1000 + 4 * 10, True: 1000 + 4 * 10 + 1000 + 200 * 10 - 1}
