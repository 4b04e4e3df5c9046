"""Prefixes are computed once, found by hash, believed only by their tokens, and never written by two."""

from __future__ import annotations

import pytest
from tests.engine.cached_engine import CachedEngine
from tests.engine.simulation import prompt

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.base import CopyKind
from quantgate_engine.kv.prefix_cache import PrefixCache
from quantgate_engine.kv.prefix_chain import PrefixChain
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import AbortCause
from quantgate_engine.request_terms import RequestTerms

SHARING = CacheSettings(prefix_sharing=True)


def test_thirty_two_requests_with_one_prefix_of_400_tokens_compute_it_once() -> None:
    engine = CachedEngine(
        num_blocks=512, block_size=16, max_active_requests=32, max_step_tokens=1024, max_overtakes=64, cache=SHARING
    )
    for i in range(32):
        engine.add(f"r{i}", prompt(400) + prompt(10, 500 + i), max_tokens=4)
    engine.run()
    assert engine.core.totals.prefill_tokens == 400 + 32 * 10
    assert engine.core.totals.cached_prompt_tokens == 31 * 400
    assert sum(request.cached_prompt_tokens for request in engine.ended.values()) == 31 * 400


@pytest.mark.parametrize("steps_later", range(4))
def test_a_prompt_that_is_computed_in_chunks_is_waited_for_to_its_end(steps_later: int) -> None:
    engine = CachedEngine(max_step_tokens=16, cache=SHARING)
    engine.add("first", prompt(60), max_tokens=2)
    engine.step(steps_later)
    engine.add("later", prompt(60) + prompt(3, 500), max_tokens=2)
    engine.run()
    assert engine.core.totals.prefill_tokens == 60 + 3


def test_without_the_setting_nothing_is_shared_and_nothing_stays() -> None:
    engine = CachedEngine()
    for _ in range(2):
        engine.add("a", prompt(20), max_tokens=2)
        engine.run()
    assert engine.core.totals.cached_prompt_tokens == 0
    assert engine.core.totals.prefill_tokens == 40
    assert engine.core._kv.cached_blocks == 0


@pytest.mark.parametrize("length", [3, 4, 5, 8, 15, 16, 17])
def test_a_prompt_that_is_cached_whole_computes_its_last_token_again(length: int) -> None:
    engine = CachedEngine(cache=SHARING)
    engine.add("first", prompt(length), max_tokens=3)
    engine.run()
    engine.add("again", prompt(length), max_tokens=3)
    engine.run()
    # Blocks of 4: whole ones are found, and of a prompt of whole blocks all but the last token is taken over.
    cached = min(length // 4 * 4, length - 1)
    assert engine.ended["again"].cached_prompt_tokens == cached
    assert engine.ended["again"].output_token_ids == engine.ended["first"].output_token_ids
    assert engine.core.totals.prefill_tokens == length + length - cached
    forks = [copy for copy in engine.executor.copies if copy.kind is CopyKind.FORK]
    assert len(forks) == (1 if cached % 4 else 0)


def test_the_answer_of_one_turn_is_the_prefix_of_the_next() -> None:
    engine = CachedEngine(cache=SHARING)
    engine.add("turn-1", prompt(10), max_tokens=7)
    answer = engine.run()["turn-1"].output_token_ids
    engine.add("turn-2", prompt(10) + answer + prompt(6, 77), max_tokens=3)
    # 16 of the 17 tokens were stored (the last one never is): four blocks.
    assert engine.run()["turn-2"].cached_prompt_tokens == 16


@pytest.mark.parametrize(("cause", "cached"), [(AbortCause.DISCONNECT, 16), (AbortCause.ERROR, 8)])
def test_what_was_answered_before_an_abort_is_found_unless_a_failure_ended_it(cause: AbortCause, cached: int) -> None:
    engine = CachedEngine(cache=SHARING)
    request = engine.add("first", prompt(10), max_tokens=40)
    engine.step(8)
    engine.core.abort("first", cause)
    engine.step()
    engine.add("goes on", (*prompt(10), *request.output_token_ids), max_tokens=2)
    assert engine.run()["goes on"].cached_prompt_tokens == cached


def test_a_cached_block_is_evicted_when_memory_is_wanted_and_its_prefix_is_not_found_any_more() -> None:
    engine = CachedEngine(num_blocks=6, cache=SHARING)
    engine.add("a", prompt(9), max_tokens=2)
    engine.run()
    assert engine.core._kv.cached_blocks == 2
    engine.add("b", prompt(20, 300), max_tokens=5)
    engine.run()
    engine.add("a", prompt(9), max_tokens=2)
    assert engine.run()["a"].cached_prompt_tokens == 0


def test_blocks_at_the_end_of_a_prefix_are_evicted_before_those_at_its_start() -> None:
    engine = CachedEngine(num_blocks=6, cache=SHARING)
    engine.add("a", prompt(17), max_tokens=1)
    engine.run()
    engine.add("b", prompt(11, 300), max_tokens=1)
    engine.run()
    engine.add("a", prompt(17), max_tokens=1)
    # Of 4 cached blocks and 2 free ones, b took 3: the last block of a's prefix went, and 3 are left.
    assert engine.run()["a"].cached_prompt_tokens == 12


def test_the_salt_keeps_requests_apart() -> None:
    engine = CachedEngine(cache=SHARING)
    for name, salt in [("a", "x"), ("b", "y"), ("c", "x")]:
        engine.add(name, prompt(12), max_tokens=1, terms=RequestTerms(cache_salt=salt))
        engine.run()
    assert [engine.ended[name].cached_prompt_tokens for name in "abc"] == [0, 0, 11]


def test_an_abort_of_the_one_that_computes_a_prefix_lets_those_go_on_that_waited_for_it() -> None:
    engine = CachedEngine(cache=SHARING, max_step_tokens=8)
    engine.add("first", prompt(24), max_tokens=2)
    engine.add("second", (*prompt(24), 7), max_tokens=2)
    engine.step()
    engine.core.abort("first", AbortCause.CANCELLED)
    engine.run()
    assert engine.ended["second"].output
    assert engine.core.totals.prefill_tokens == 25


def _collide(data: bytes) -> bytes:
    return bytes([sum(data) % 3])


def _chain(cache: PrefixCache, tokens: tuple[int, ...]) -> PrefixChain:
    chain = cache.chain()
    cache.lengthen(chain, lambda start, stop: tokens[start:stop], len(tokens))
    return chain


def test_a_hash_that_collides_finds_nobody_elses_block() -> None:
    cache = PrefixCache(120, 4, ("model",), digest=_collide)
    chains = [_chain(cache, prompt(12, first)) for first in range(40)]
    for number, chain in enumerate(chains):
        for depth in range(3):
            cache.add(chain, [number * 3 + depth], depth)
    found = 0
    for number, chain in enumerate(chains):
        blocks = cache.find(chain)
        assert blocks == [number * 3, number * 3 + 1, number * 3 + 2][: len(blocks)]
        found += len(blocks)
    assert found > 0


def test_equal_last_blocks_after_unlike_first_blocks_are_unlike_prefixes_also_where_all_hashes_collide() -> None:
    cache = PrefixCache(2, 2, ("model",), digest=lambda data: data[-4:])
    mine, theirs = _chain(cache, (1, 2, 5, 6)), _chain(cache, (3, 2, 5, 6))
    assert cache.add(mine, [0, 1]) == [0, 1]
    assert cache.find(theirs) == []
    assert cache.find(_chain(cache, (1, 2, 5, 6, 7))) == [0, 1]


def test_a_prefix_in_runs_of_several_requests_is_found_across_them_and_only_as_far_as_it_is_the_same() -> None:
    cache = PrefixCache(12, 2, ("model",))
    first = _chain(cache, (1, 2, 3, 4))
    cache.add(first, [3, 1])
    second = _chain(cache, (1, 2, 3, 4, 5, 6))
    assert cache.find(second) == [3, 1]
    cache.add(second, [7], 2)
    # Computed beside the second one: of its three blocks only the last was news.
    third = _chain(cache, (1, 2, 3, 4, 5, 6, 7, 8))
    assert cache.add(third, [8, 9, 10, 11]) == [11]
    assert cache.find(_chain(cache, (1, 2, 3, 4, 5, 6, 7, 8, 9, 9))) == [3, 1, 7, 11]
    assert cache.find(_chain(cache, (1, 2, 3, 4, 6, 6, 7, 8))) == [3, 1]
    cache.forget([1])
    assert cache.find(_chain(cache, (1, 2, 3, 4, 5, 6, 7, 8))) == [3]


def test_a_prefix_that_leaves_a_run_in_its_middle_goes_on_in_the_run_that_starts_there() -> None:
    cache = PrefixCache(12, 2, ("model",))
    cache.add(_chain(cache, (1, 2, 3, 4, 5, 6)), [0, 1, 2])
    branch = _chain(cache, (1, 2, 3, 4, 7, 8, 9, 9))
    assert cache.find(branch) == [0, 1]
    cache.add(branch, [3, 4], 2)
    assert cache.find(_chain(cache, (1, 2, 3, 4, 7, 8, 9, 9, 1, 1))) == [0, 1, 3, 4]
    assert cache.find(_chain(cache, (1, 2, 3, 4, 5, 6, 9, 9))) == [0, 1, 2]


def test_what_a_request_computed_by_itself_is_not_registered_where_the_run_that_it_started_from_has_it() -> None:
    cache = PrefixCache(12, 2, ("model",))
    cache.add(_chain(cache, (1, 2, 3, 4, 5, 6)), [0, 1, 2])
    prompt_alone = _chain(cache, (1, 2, 3, 4))
    assert cache.find(prompt_alone) == [0, 1]
    cache.lengthen(prompt_alone, lambda start, stop: (1, 2, 3, 4, 5, 6, 7, 8)[start:stop], 8)
    assert cache.add(prompt_alone, [7, 8], 2) == [8]
    assert cache.find(_chain(cache, (1, 2, 3, 4, 5, 6, 7, 8))) == [0, 1, 2, 8]


def test_a_block_that_holds_something_else_since_is_not_found_by_a_hash_of_what_it_held_before() -> None:
    cache = PrefixCache(2, 1, ("model",), digest=lambda data: data[-4:-3])
    old, new = _chain(cache, (1, 2)), _chain(cache, (257, 258))
    cache.add(old, [0, 1])
    cache.forget([1])
    cache.forget([0])
    cache.add(new, [0, 1])
    assert cache.find(_chain(cache, (1, 2))) == []
    assert cache.find(old) == []
    assert cache.find(_chain(cache, (257, 258))) == [0, 1]


def test_a_later_block_with_the_hash_of_a_first_one_is_not_taken_for_it() -> None:
    cache = PrefixCache(4, 1, ("model",), digest=lambda data: data[-4:])
    mine = _chain(cache, (1, 2, 1, 2))
    assert cache.add(mine, [0, 1, 2, 3]) == [0, 1, 2, 3]
    assert cache.find(_chain(cache, (1, 1, 2))) == [0]
    cache.forget([3, 2])
    assert cache.find(mine) == [0, 1]
    assert cache.add(mine, [0, 1, 2, 3]) == []


def test_an_engine_whose_hashes_all_collide_still_answers_right() -> None:
    engine = CachedEngine(cache=SHARING)
    engine.core._kv.prefixes._digest = _collide
    for i in range(12):
        engine.add(f"r{i}", prompt(13, i % 4), max_tokens=5, seed=i)
    engine.run()
    assert len(engine.ended) == 12


def test_roots_differ_by_model_scheme_dtype_and_salt_and_not_by_how_these_are_joined() -> None:
    identities = [("ab", "c"), ("a", "bc"), ("abc",), ("ab", "d")]
    roots = [PrefixCache(1, 4, identity).root().digest for identity in identities]
    assert len(set(roots)) == len(identities)
    # A name that equals another tenant's salt must not meet it (vllm#44701).
    assert PrefixCache(1, 4, ("a",)).root("b").digest != PrefixCache(1, 4, ("a", "b")).root().digest


def test_forks_share_the_prompt_and_copy_only_the_block_that_they_write() -> None:
    engine = CachedEngine(num_blocks=32, max_step_tokens=32)
    engine.add("n-0", prompt(10), max_tokens=6, seed=0)
    for i in range(1, 4):
        engine.add(f"n-{i}", prompt(10), max_tokens=6, terms=RequestTerms(fork_of="n-0"), seed=i)
    engine.step()
    assert engine.core.held_blocks == 3
    engine.step()
    # Two full blocks are shared by four; each of the four has a third of its own.
    assert engine.core.held_blocks == 2 + 4
    assert engine.core.load.used_tokens == 8 + 3 * 2 + 3
    engine.run()
    assert engine.core.totals.prefill_tokens == 10 + 3
    assert len({request.output_token_ids for request in engine.ended.values()}) == 4
    assert len(engine.executor.copies) == 3


def test_a_fork_with_another_salt_does_not_give_its_parents_blocks_a_second_name() -> None:
    engine = CachedEngine(num_blocks=8, cache=SHARING)
    engine.add("parent", prompt(9), max_tokens=4)
    engine.add("child", prompt(9), max_tokens=4, terms=RequestTerms(fork_of="parent", cache_salt="other"))
    engine.run()
    engine.add("flood", prompt(20, 300), max_tokens=13)
    engine.run()
    assert len(engine.core._kv.prefixes) == engine.core._kv.cached_blocks
    engine.add("child", prompt(9), max_tokens=4, terms=RequestTerms(cache_salt="other"))
    assert engine.run()["child"].cached_prompt_tokens == 0


def test_a_fork_whose_parent_is_gone_computes_its_prompt_itself() -> None:
    engine = CachedEngine(max_step_tokens=4)
    engine.add("parent", prompt(10), max_tokens=2)
    engine.add("child", prompt(10), max_tokens=2, terms=RequestTerms(fork_of="parent"))
    engine.step()
    engine.core.abort("parent", AbortCause.DISCONNECT)
    engine.run()
    assert engine.ended["child"].cached_prompt_tokens == 0


def test_two_that_name_each_other_as_parents_do_not_wait_for_each_other() -> None:
    engine = CachedEngine()
    engine.add("a", prompt(10), max_tokens=2, terms=RequestTerms(fork_of="b"))
    engine.add("b", prompt(10), max_tokens=2, terms=RequestTerms(fork_of="a"))
    assert set(engine.run()) == {"a", "b"}


def test_a_fork_shares_no_more_than_what_is_the_same() -> None:
    engine = CachedEngine(max_step_tokens=32)
    engine.add("a", prompt(12), max_tokens=9)
    engine.add("b", prompt(6) + prompt(6, 400), max_tokens=3, terms=RequestTerms(fork_of="a"))
    assert engine.run()["b"].cached_prompt_tokens == 6


def test_a_full_pool_takes_over_whole_blocks_where_there_is_no_room_for_a_copy() -> None:
    engine = CachedEngine(num_blocks=4, cache=SHARING)
    engine.add("a", prompt(12), max_tokens=5)
    engine.run()
    engine.add("b", prompt(12), max_tokens=5)
    # All 4 blocks are needed, so the cached third one cannot be held beside its copy.
    assert engine.run()["b"].cached_prompt_tokens == 8


def test_sessions_without_sharing_are_refused_in_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="session_seconds is 5; expected 0 unless prefix_sharing is on"):
        CacheSettings(session_seconds=5)
