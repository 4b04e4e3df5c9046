"""The order of eviction, against the plainest queue there is."""

from __future__ import annotations

import random

import pytest

from quantgate_engine.kv.cached_blocks import CachedBlocks


def test_the_first_are_popped_in_the_order_in_which_they_came_also_within_a_run_and_over_several() -> None:
    cached = CachedBlocks(8)
    cached.extend([5, 3, 1])
    cached.extend([2, 4])
    assert cached.pop_first(2) == [5, 3]
    assert cached.pop_first(2) == [1, 2]
    assert (list(cached), len(cached), 4 in cached, 2 in cached, cached.count([2, 4])) == ([4], 1, True, False, 1)


def test_a_block_that_left_and_came_back_stands_at_the_end() -> None:
    cached = CachedBlocks(8)
    cached.extend([0, 1, 2])
    cached.remove(0)
    cached.extend([0])
    assert list(cached) == [1, 2, 0]
    assert cached.pop_first(3) == [1, 2, 0]


def test_blocks_that_come_and_go_for_ever_leave_nothing_behind() -> None:
    cached = CachedBlocks(16)
    cached.extend([15])
    for _ in range(10_000):
        cached.extend(range(10))
        for block in range(10):
            cached.remove(block)
    assert sum(len(run) for _, run in cached._runs) < 300
    assert list(cached) == [15]


@pytest.mark.parametrize("seed", range(20))
def test_any_moves_are_those_of_a_list(seed: int) -> None:
    chosen = random.Random(seed)
    cached, expected = CachedBlocks(400), list[int]()
    for _ in range(600):
        outside = [block for block in range(400) if block not in expected]
        come = chosen.sample(outside, min(len(outside), chosen.randrange(40)))
        cached.extend(come)
        expected += come
        for block in chosen.sample(expected, min(len(expected), chosen.randrange(30))):
            cached.remove(block)
            expected.remove(block)
        count = min(len(expected), chosen.randrange(12))
        assert cached.pop_first(count) == expected[:count]
        del expected[:count]
        assert (list(cached), len(cached)) == (expected, len(expected))
        assert [block for block in range(400) if block in cached] == sorted(expected)
