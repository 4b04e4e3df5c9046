"""Which pool a request goes to."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.engine.pools import Pools, bulk, engine, fast
from tests.engine.simulation import prompt

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import AbortCause, RequestState
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.router.settings import PoolRule, RouterSettings, SpillSettings, TokenRange
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.slo_class import BATCH, INTERACTIVE

ONLY_BATCH = PoolRule(slo_classes=("batch",), output_tokens=TokenRange(least=8, most=20))
KEEPING = CacheSettings(prefix_sharing=True, session_seconds=1.0)


@pytest.mark.parametrize(
    ("slo_class", "length", "max_tokens", "pool"),
    [
        ("interactive", 16, 4, "fast"),
        ("interactive", 17, 4, "bulk"),
        ("batch", 16, 4, "bulk"),
        ("batch", 16, 8, "long"),
        ("batch", 16, 20, "long"),
        ("batch", 16, 21, "bulk"),
        (None, 16, 8, "fast"),
    ],
)
def test_class_and_lengths_lead_to_the_first_pool_whose_rule_takes_them(
    slo_class: str | None, length: int, max_tokens: int, pool: str
) -> None:
    pools = Pools(fast(), bulk("long", rule=ONLY_BATCH), bulk())
    assert pools.add("a", length, max_tokens, slo_class=slo_class) == pool
    pools.run()
    assert [request.state for request in pools.ended] == [RequestState.FINISHED]


def test_a_request_without_a_class_has_the_first_pools_first_class_wherever_it_runs() -> None:
    batch_first = BatchingSettings(slo_classes=(BATCH, INTERACTIVE))
    pools = Pools(fast(), bulk(engine=engine(batching=batch_first)))
    assert pools.add("a", length=17) == "bulk"
    pools.run()
    assert pools.ended[0].terms.slo_class == "interactive"


def test_a_class_that_no_pool_has_is_an_error_and_one_that_some_pools_have_goes_to_those() -> None:
    pools = Pools(bulk("one", engine=engine(batching=BatchingSettings(slo_classes=(INTERACTIVE,)))), bulk("two"))
    assert pools.add("a", slo_class="batch") == "two"
    with pytest.raises(ConfigurationError, match="SLO class 'urgent'; expected one of interactive, batch"):
        pools.add("b", slo_class="urgent")


def test_what_no_rule_takes_is_rejected_with_the_numbers() -> None:
    pools = Pools(fast(), bulk("long", rule=ONLY_BATCH))
    assert pools.add("a", 17, 4) is None
    with pytest.raises(ConfigurationError, match="'a' belongs to a request that has not ended"):
        pools.add("a", 17, 4)
    why = pools.core.refusal("a", prompt(17), SamplingParams(max_tokens=4))
    assert pools.core.has_work
    pools.run()
    [request] = pools.ended
    assert request.state is RequestState.REJECTED
    assert request.error == why
    assert request.error == (
        "Request a was rejected: no pool takes class interactive with 17 prompt and 4 output tokens (fast takes "
        "interactive with 0 to 16 prompt and 0 or more output tokens; long takes batch with 0 or more prompt and 8 to "
        "20 output tokens); change the request, or the rule of a pool."
    )
    [record] = pools.core.take_steps()
    assert (record.pool, record.rejected_count, pools.core.totals.rejected_count) == (None, 1, 1)
    assert not pools.core.has_work


def test_a_pool_that_could_never_run_a_request_is_passed_over_and_the_first_says_why_none_can() -> None:
    pools = Pools(fast(engine=engine(max_context_tokens=12)), bulk())
    assert pools.add("fits", 8, 4) == "fast"
    assert pools.add("too long for fast", 8, 5) == "bulk"
    assert pools.add("too long for all", 8, 300) == "fast"
    pools.run()
    assert [request.state for request in pools.ended if request.request_id == "too long for all"] == [
        RequestState.REJECTED
    ]
    refusal = pools.core.refusal("r", prompt(8), SamplingParams(max_tokens=300))
    assert refusal is not None
    assert "context limit of 12" in refusal


def test_the_least_loaded_pool_is_the_one_with_the_fewest_live_requests_for_its_places() -> None:
    two, eight = engine(max_active_requests=2), engine(max_active_requests=8)
    pools = Pools(bulk("two", engine=two), bulk("eight", engine=eight), settings=RouterSettings(choice="least-loaded"))
    went = [pools.add(f"r{i}", max_tokens=50) for i in range(10)]
    assert went == ["two", "eight", "eight", "eight", "eight", "two", "eight", "eight", "eight", "eight"]
    pools.run()
    assert pools.add("later") == "two"


class TestSpill:
    def test_nothing_spills_by_default(self) -> None:
        pools = Pools(fast(), bulk())
        assert {pools.add(f"r{i}") for i in range(30)} == {"fast"}

    def test_new_requests_go_elsewhere_while_too_many_wait(self) -> None:
        pools = Pools(fast(spill=SpillSettings(to="bulk", waiting_requests=3)), bulk(rule=ONLY_BATCH))
        went = [pools.add(f"r{i}", max_tokens=50) for i in range(5)]
        assert went == ["fast", "fast", "fast", "bulk", "bulk"]
        pools.run_for(1)
        # Two of the three run now, and one waits.
        assert [pools.add(f"s{i}") for i in range(3)] == ["fast", "fast", "bulk"]
        pools.run()
        assert len(pools.ended) == 8
        assert pools.add("later") == "fast"

    def test_new_requests_go_elsewhere_while_too_many_blocks_are_held(self) -> None:
        half = SpillSettings(to="bulk", held_share=0.5)
        pools = Pools(fast(engine=engine(num_kv_blocks=8), spill=half), bulk())
        pools.add("a", 16, 8)
        assert pools.add("before the first step") == "fast"
        pools.run_for(1)
        assert pools.core.pools[0].core.held_blocks < 4
        assert pools.add("with less than half of the blocks held") == "fast"
        pools.run_for(3000)
        assert pools.core.pools[0].core.held_blocks >= 4
        assert pools.add("with half of the blocks held") == "bulk"

    def test_a_full_pool_keeps_what_the_other_cannot_run_or_is_too_full_for(self) -> None:
        one = SpillSettings(to="bulk", waiting_requests=1)
        back = SpillSettings(to="fast", waiting_requests=1)
        pools = Pools(fast(spill=one), bulk(engine=engine(max_context_tokens=12), spill=back))
        assert [pools.add(f"r{i}") for i in range(4)] == ["fast", "bulk", "fast", "fast"]
        pools = Pools(fast(spill=one), bulk(engine=engine(max_context_tokens=12)))
        assert [pools.add(f"r{i}", 8, 5) for i in range(2)] == ["fast", "fast"]


class TestSticking:
    def test_a_fork_goes_where_its_live_parent_is_and_shares_its_blocks(self) -> None:
        pools = Pools(fast(), bulk())
        assert pools.add("parent", 12, 8, slo_class="batch") == "bulk"
        assert pools.add("fork", 12, 8, fork_of="parent") == "bulk"
        pools.run()
        assert pools.core.totals.cached_prompt_tokens == 11
        assert pools.add("late fork", 12, 8, fork_of="parent") == "fast"

    def test_a_fork_that_its_parents_pool_cannot_run_goes_by_the_rules(self) -> None:
        pools = Pools(fast(engine=engine(max_context_tokens=20)), bulk())
        assert pools.add("parent", 12, 8) == "fast"
        assert pools.add("fork", 12, 9, fork_of="parent") == "bulk"

    def test_a_sessions_next_turn_goes_where_the_last_one_is_or_left_its_blocks(self) -> None:
        pools = Pools(fast(engine=engine(cache=KEEPING)), bulk(engine=engine(cache=KEEPING)))
        assert pools.add("turn 1", 8, 8, session_id="s") == "fast"
        assert pools.add("turn 2", 20, 4, session_id="s") == "fast"
        pools.run()
        # Two blocks of the first turn's prompt.
        assert pools.core.totals.cached_prompt_tokens == 8
        assert pools.add("turn 3", 20, 4, session_id="s") == "fast"
        assert pools.add("another's", 20, 4, session_id="t") == "bulk"
        pools.run()
        assert pools.core.totals.cached_prompt_tokens == 8 + 19
        pools.run_for(1_000_000_000)
        pools.add("anybody", 1, 1)
        pools.run()
        assert pools.add("turn 4", 20, 4, session_id="s") == "bulk"

    def test_of_two_pools_that_keep_a_session_the_last_turns_counts(self) -> None:
        pools = Pools(fast(engine=engine(cache=KEEPING)), bulk(engine=engine(cache=KEEPING)))
        pools.add("turn 1", 8, 8, session_id="s")
        pools.run()
        pools.add("parent", 20, 60)
        assert pools.add("turn 2", 20, 8, session_id="s", fork_of="parent") == "bulk"
        pools.run()
        assert all(pool.core.session_since_ns("s") is not None for pool in pools.core.pools)
        assert pools.add("turn 3", 8, 8, session_id="s") == "bulk"

    def test_a_turn_that_was_given_up_keeps_nobody(self) -> None:
        pools = Pools(fast(), bulk())
        pools.add("turn 1", 8, 8, session_id="s")
        pools.core.abort("turn 1", AbortCause.CANCELLED)
        pools.run()
        assert pools.add("turn 2", 20, 8, session_id="s") == "bulk"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pools(), "pools is \\[\\]; expected at least one pool"),
        (lambda: Pools(fast("a"), bulk("a")), "pools.1.name is 'a'; expected a name that no other pool has"),
        (lambda: fast(spill=SpillSettings(to="bulk")), "SpillSettings.waiting_requests is None; expected a threshold"),
        (lambda: SpillSettings(to="bulk", held_share=1.5), "held_share is 1.5; expected above 0 and at most 1"),
        (
            lambda: Pools(fast(spill=SpillSettings(to="bluk", waiting_requests=1)), bulk()),
            "pools.0.spill.to is 'bluk'; expected another pool \\(bulk\\)",
        ),
        (
            lambda: Pools(bulk(spill=SpillSettings(to="bulk", waiting_requests=1))),
            "expected another pool \\(there is none, so leave spill out",
        ),
        (lambda: TokenRange(least=5, most=4), "TokenRange.most is 4; expected at least 5"),
        (lambda: PoolRule(slo_classes=("batch", "batch")), "PoolRule.slo_classes is .*; expected no name twice"),
        (lambda: fast("two\nlines"), r"PoolSettings.name is 'two\\nlines'; expected a name of 1 to 80 printable"),
        (lambda: fast(" "), "PoolSettings.name is ' '; expected a name of"),
        (lambda: fast(share=0.0), "PoolSettings.share is 0.0; expected above 0"),
        (lambda: fast(share="half"), "PoolSettings.share is 'half'; expected a number of at most"),
        (lambda: fast(share=math.inf), "PoolSettings.share is inf; expected a number of at most"),
        (lambda: SpillSettings(to="bulk", held_share=True), "SpillSettings.held_share is True; expected a number of"),
        (
            lambda: bulk(rule=PoolRule(slo_classes=("urgent",))),
            "slo_classes is \\('urgent',\\); expected classes that the engine of pool bulk has \\(interactive, b",
        ),
        (lambda: RouterSettings(turns="fair"), "RouterSettings.turns is 'fair'; expected one of time-share, priority"),  # type: ignore[arg-type]
        (lambda: RouterSettings(max_passed_steps=0), "max_passed_steps is 0; expected at least 1"),
    ],
)
def test_wrong_settings_are_told_in_one_sentence(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_terms_keep_all_but_their_class() -> None:
    pools = Pools(bulk())
    terms = RequestTerms(timeout_s=3.0, session_id="s", cache_salt="x")
    request = pools.core.add_request("a", prompt(4), SamplingParams(max_tokens=2), terms)
    assert request.terms == RequestTerms(slo_class="interactive", timeout_s=3.0, session_id="s", cache_salt="x")
