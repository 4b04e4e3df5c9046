"""Blocks of the KV cache: one owner each, promises kept, block-seconds by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantgate_engine.kv.block_pool import BlockPool, BlockPoolError
from quantgate_engine.kv.kv_manager import KVManager


def test_the_pool_hands_out_each_block_once_and_then_says_that_it_is_empty() -> None:
    pool = BlockPool(3)
    assert sorted(pool.take("a", 2) + pool.take("a", 1)) == [0, 1, 2]
    with pytest.raises(BlockPoolError, match="b asked for 1 blocks, and 3 of 3 are held"):
        pool.take("b", 1)


def test_a_block_is_given_back_once_and_by_its_owner_alone() -> None:
    pool = BlockPool(2)
    [block] = pool.take("a", 1)
    with pytest.raises(BlockPoolError, match=f"b gave back block {block}, which a holds"):
        pool.give_back("b", [block])
    pool.give_back("a", [block])
    with pytest.raises(BlockPoolError, match=f"a gave back block {block}, which None holds"):
        pool.give_back("a", [block])
    assert (pool.num_free, pool.num_held) == (2, 0)


def test_a_block_that_is_named_twice_in_one_release_stays_with_its_owner() -> None:
    pool = BlockPool(2)
    [block] = pool.take("a", 1)
    with pytest.raises(BlockPoolError, match=f"a gave back one of the blocks .{block}, {block}. twice"):
        pool.give_back("a", [block, block])
    pool.check({"a": [block]})


def test_all_that_one_holds_goes_to_somebody_who_holds_nothing() -> None:
    pool = BlockPool(4)
    blocks = pool.take("a", 3)
    pool.rename("a", "b", 3)
    pool.check({"b": blocks})
    pool.rename("a", "c", 0)
    pool.check({"b": blocks})
    with pytest.raises(BlockPoolError, match="c was to take over 2 blocks from b; they hold 0 and 3"):
        pool.rename("b", "c", 2)


def test_nobody_who_holds_blocks_takes_over_those_of_another() -> None:
    pool = BlockPool(4)
    pool.take("a", 3)
    pool.take("b", 1)
    with pytest.raises(BlockPoolError, match="b was to take over 3 blocks from a; they hold 1 and 3"):
        pool.rename("a", "b", 3)


def test_a_share_is_of_a_block_that_somebody_holds_or_that_is_cached_and_one_for_each() -> None:
    pool = BlockPool(2)
    [block] = pool.take("a", 1)
    pool.share("b", [block])
    with pytest.raises(BlockPoolError, match=f"b wanted a second share of block {block}"):
        pool.share("b", [block])
    pool.keep([block])
    pool.give_back("a", [block])
    pool.give_back("b", [block])
    assert (pool.num_held, pool.num_cached, pool.num_unheld([block])) == (0, 1, 1)
    pool.share("c", [block])
    pool.check({"c": [block]})
    with pytest.raises(BlockPoolError, match=f"c wanted a share of block {1 - block}, which is free"):
        pool.share("c", [1 - block])


def test_the_longest_cached_are_evicted_first_and_in_a_large_pool_some_ahead() -> None:
    evicted: list[int] = []
    pool = BlockPool(1024, on_evict=evicted.extend)
    blocks = pool.take("a", 1024)
    pool.keep(blocks)
    pool.give_back("a", blocks)
    pool.take("b", 1)
    assert evicted == blocks[:5]
    pool.take("b", 4)
    assert len(evicted) == 5
    assert pool.num_available == 1024 - 5


def test_the_check_finds_a_block_that_nobody_claims_and_one_that_two_claim() -> None:
    pool = BlockPool(4)
    [block] = pool.take("a", 1)
    pool.check({"a": [block]})
    with pytest.raises(BlockPoolError, match=f"block {block} belongs to a, but lies with None"):
        pool.check({})
    with pytest.raises(BlockPoolError, match=f"block {block} belongs to a, but lies with a and b"):
        pool.check({"a": [block], "b": [block]})


@pytest.mark.parametrize(("tokens", "blocks"), [(1, 1), (15, 1), (16, 1), (17, 2), (32, 2), (33, 3)])
def test_blocks_are_counted_in_whole_ones(tokens: int, blocks: int) -> None:
    assert KVManager(num_blocks=8, block_size=16).blocks_for(tokens) == blocks


def test_what_is_promised_but_not_taken_is_free_for_nobody_else() -> None:
    kv = KVManager(num_blocks=4, block_size=4)
    kv.open("a", max_tokens=12, now_ns=0)
    assert (kv.held_blocks, kv.unpromised_blocks) == (0, 1)
    kv.grow("a", 5, now_ns=0)
    assert (kv.held_blocks, kv.unpromised_blocks) == (2, 1)
    with pytest.raises(BlockPoolError, match="without 2 blocks to promise"):
        kv.open("b", max_tokens=8, now_ns=0)
    with pytest.raises(BlockPoolError, match="past its 3 blocks"):
        kv.grow("a", 13, now_ns=0)
    kv.release("a", now_ns=0)
    assert (kv.held_blocks, kv.unpromised_blocks) == (0, 4)


def test_block_seconds_and_peak_by_hand() -> None:
    kv = KVManager(num_blocks=8, block_size=4)
    second = 10**9
    kv.open("a", max_tokens=12, now_ns=0)
    kv.grow("a", 4, now_ns=1 * second)
    kv.grow("a", 9, now_ns=3 * second)
    usage = kv.release("a", now_ns=7 * second)
    # 0 blocks for 1 s, 1 block for 2 s, 3 blocks for 4 s.
    assert usage.block_seconds == 14.0
    assert usage.peak_blocks == 3


def test_utilization_is_used_slots_over_allocated_slots() -> None:
    kv = KVManager(num_blocks=8, block_size=4)
    assert kv.slot_utilization == 0.0
    kv.open("a", max_tokens=8, now_ns=0)
    kv.open("b", max_tokens=8, now_ns=0)
    kv.grow("a", 5, now_ns=0)
    kv.grow("b", 1, now_ns=0)
    assert kv.stored_tokens == 6
    assert kv.slot_utilization == 6 / (3 * 4)


def test_a_table_keeps_its_blocks_in_order_while_it_grows() -> None:
    kv = KVManager(num_blocks=8, block_size=4)
    kv.open("a", max_tokens=16, now_ns=0)
    tables = [kv.grow("a", tokens, now_ns=0) for tokens in range(1, 17)]
    assert all(later[: len(table)] == table for table, later in itertools.pairwise(tables))
    assert len(set(tables[-1])) == 4


def test_the_check_finds_books_that_drifted() -> None:
    kv = KVManager(num_blocks=8, block_size=4)
    kv.open("a", max_tokens=8, now_ns=0)
    kv._owed_blocks += 1
    with pytest.raises(BlockPoolError, match="the tables owe 2 blocks"):
        kv.check()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 24)), max_size=60))
def test_any_order_of_opening_growing_and_releasing_keeps_the_books(moves: list[tuple[int, int]]) -> None:
    kv = KVManager(num_blocks=12, block_size=4)
    limits: dict[str, int] = {}
    stored: dict[str, int] = {}
    for time, (number, tokens) in enumerate(moves):
        owner = f"r{number}"
        if owner not in limits:
            if kv.blocks_for(tokens) <= kv.unpromised_blocks:
                kv.open(owner, tokens, now_ns=time)
                limits[owner], stored[owner] = tokens, 0
        elif stored[owner] < min(tokens, limits[owner]):
            stored[owner] = min(tokens, limits[owner])
            kv.grow(owner, stored[owner], now_ns=time)
        else:
            kv.release(owner, now_ns=time)
            del limits[owner], stored[owner]
        kv.check()
        assert kv.stored_tokens == sum(stored.values())
        assert kv.held_blocks == sum(kv.blocks_for(count) for count in stored.values())
        assert kv.unpromised_blocks == 12 - sum(kv.blocks_for(limit) for limit in limits.values())
