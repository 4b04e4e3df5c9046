"""Who holds blocks for long or holds many: found among those that hold now, remembered when they have let go."""

from __future__ import annotations

import pytest
from tests.engine.cached_engine import CachedEngine
from tests.engine.simulation import prompt

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.greatest_holders import GreatestHolders
from quantgate_engine.kv.holding import HoldingLimits, KVHolding, long_holders
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request_terms import RequestTerms

SECOND = 10**9
SESSIONS = CacheSettings(prefix_sharing=True, session_seconds=10.0)


def _holding(name: str, blocks: int, seconds: float) -> KVHolding:
    return KVHolding(name, "request", blocks, seconds, blocks * seconds)


def test_findings_by_hand() -> None:
    holdings = [_holding("huge", 90, 5), _holding("old", 10, 61), _holding("a", 10, 5), _holding("b", 8, 60)]
    found = long_holders(holdings, HoldingLimits(times_median=8.0, held_seconds=60.0))
    # The median of 90, 10, 10 and 8 blocks is 10; limits are exclusive.
    assert [(finding.holding.holder, finding.reasons) for finding in found] == [
        ("huge", ("holds 90 blocks, and the median holder 10",)),
        ("old", ("has held blocks for 61 s, and the limit is 60 s",)),
    ]
    assert long_holders([], HoldingLimits()) == []
    assert long_holders([_holding("only", 500, 1)], HoldingLimits()) == []


def test_a_session_that_never_lets_go_is_found_however_often_it_is_renewed() -> None:
    engine = CachedEngine(cache=SESSIONS)
    for turn in range(8):
        engine.add(f"turn-{turn}", prompt(9), max_tokens=1, terms=RequestTerms(session_id="endless"))
        engine.run()
        engine.clock.advance_ns(9 * SECOND)
    [finding] = engine.core.kv_long_holders(HoldingLimits(held_seconds=60.0))
    assert (finding.holding.holder, finding.holding.kind, finding.holding.blocks) == ("endless", "session", 2)
    assert finding.holding.held_seconds == pytest.approx(72, rel=1e-4)
    assert finding.holding.block_seconds == pytest.approx(2 * 72, rel=1e-4)
    assert engine.core.session_since_ns("endless") == pytest.approx(63 * SECOND, rel=1e-4)


def test_a_session_that_paused_starts_anew() -> None:
    engine = CachedEngine(cache=SESSIONS)
    for turn in range(2):
        engine.add(f"turn-{turn}", prompt(9), max_tokens=1, terms=RequestTerms(session_id="s"))
        engine.run()
        engine.clock.advance_ns(11 * SECOND)
    [holding] = engine.core.kv_holdings()
    assert holding.held_seconds == pytest.approx(11, rel=1e-4)
    sessions = [stay for stay in engine.core.kv_greatest_holders() if stay.kind == "session"]
    assert [stay.block_seconds for stay in sessions] == [pytest.approx(2 * 11, rel=1e-4)]


def test_the_costliest_stays_are_remembered_in_order_and_no_more_than_the_limit() -> None:
    greatest = GreatestHolders(limit=3)
    for blocks in (5, 1, 9, 3, 9, 2):
        greatest.note(_holding(f"b{blocks}", blocks, 2.0))
    assert [stay.block_seconds for stay in greatest.listing()] == [18.0, 18.0, 10.0]


def test_ended_requests_are_remembered_with_what_their_ends_say() -> None:
    engine = CachedEngine()
    engine.add("long", prompt(4), max_tokens=40)
    engine.add("short", prompt(4), max_tokens=3)
    ended = engine.run()
    stays = engine.core.kv_greatest_holders()
    assert [stay.holder for stay in stays] == ["long", "short"]
    for stay in stays:
        assert stay.block_seconds == pytest.approx(ended[stay.holder].kv_block_seconds)
        assert stay.blocks == ended[stay.holder].kv_peak_blocks


def test_limits_that_find_everybody_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"HoldingLimits\.times_median is 1; expected above 1"):
        HoldingLimits(times_median=1)
    with pytest.raises(ConfigurationError, match=r"HoldingLimits\.held_seconds is 0; expected above 0"):
        HoldingLimits(held_seconds=0)
