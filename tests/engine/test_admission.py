"""Who may start: caps, estimators, the watermark, and the three things that become of who may not."""

from __future__ import annotations

import pytest
from tests.engine.cached_engine import CachedEngine
from tests.engine.simulation import prompt

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.outputs import end_of
from quantgate_engine.request import Request, RequestState
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.scheduler.admission.estimators import ESTIMATORS, PastFuture
from quantgate_engine.scheduler.admission.settings import AdmissionSettings


def _request(name: str, prompt_tokens: int, max_tokens: int, drawn: int = 0) -> Request:
    request = Request(name, prompt(prompt_tokens), SamplingParams(max_tokens=max_tokens), arrived_ns=0)
    request.output = [None] * drawn
    return request


def test_guaranteed_never_preempts_and_optimistic_lets_in_more() -> None:
    def active_at_once(estimator: str) -> tuple[int, int]:
        engine = CachedEngine(num_blocks=12, admission=AdmissionSettings(estimator=estimator))
        for i in range(8):
            engine.add(f"r{i}", prompt(4, i), max_tokens=17)
        engine.run()
        records = engine.core.take_steps()
        return max(record.active_requests for record in records), engine.core.totals.preemption_count

    assert active_at_once("guaranteed") == (2, 0)
    most, preemptions = active_at_once("optimistic")
    assert (most, preemptions > 0) == (4, True)


def test_optimistic_asks_for_the_whole_prompt_not_for_its_first_chunk() -> None:
    engine = CachedEngine(num_blocks=10, max_step_tokens=8, admission=AdmissionSettings(estimator="optimistic"))
    engine.add("a", prompt(24), max_tokens=2)
    engine.add("b", prompt(24, 100), max_tokens=2)
    engine.step(3)
    assert engine.core.load.active_requests == 1
    assert engine.core.load.waiting_requests == 1


def test_past_future_peak_by_hand() -> None:
    estimator = PastFuture(AdmissionSettings(past_quantile=1.0))
    # Nothing was learned: what is left goes to max_tokens. Left 10, 6, 2 with 5, 8, 9 tokens there:
    # 5 + 1 x 10 = 15; 5 + 8 + 2 x 6 = 25; 5 + 8 + 9 + 3 x 2 = 28.
    running = [_request("a", 5, 10), _request("b", 8, 6)]
    assert estimator.crowd(running).peak_with(_request("c", 9, 2)) == 28
    # Answers ended after 3 and 4 tokens: all are expected to do so. Left 4, 4, 2: 9, 21, 28.
    estimator.learn(3)
    estimator.learn(4)
    assert estimator.crowd(running).peak_with(_request("c", 9, 2)) == 28
    # Without c: 5 + 4 = 9, and 5 + 8 + 2 x 4 = 21.
    assert estimator.crowd(running[1:]).peak_with(running[0]) == 21


def test_past_future_goes_by_the_answers_that_were_longer_than_this_one_is() -> None:
    estimator = PastFuture(AdmissionSettings(past_quantile=0.5, past_answers=5))
    for length in (100, 2, 4, 6, 8, 10):
        estimator.learn(length)
    # The 100 is forgotten. Of 2, 4, 6, 8, 10 the middle one is 6; beyond 5 drawn tokens 6, 8, 10 are left: 8.
    assert estimator.crowd([]).peak_with(_request("a", 10, 50)) == 10 + 6
    assert estimator.crowd([]).peak_with(_request("a", 10, 50, drawn=5)) == 15 + 3
    # Longer than every past answer: it may go to its max_tokens.
    assert estimator.crowd([]).peak_with(_request("a", 10, 50, drawn=10)) == 20 + 40


def test_past_future_lets_in_more_once_it_knows_that_answers_are_short() -> None:
    engine = CachedEngine(
        num_blocks=24, max_step_tokens=32, admission=AdmissionSettings(estimator="past-future", past_quantile=1.0)
    )

    def flood(first: int) -> int:
        for i in range(first, first + 4):
            request = engine.add(f"r{i}", prompt(6, i), max_tokens=60)
            request.params = SamplingParams(max_tokens=60)
        engine.step()
        active = engine.core.load.active_requests
        engine.step(3)
        for i in range(first, first + 4):
            engine.core.finish(f"r{i}")
        for _ in range(200):
            engine.step()
            for i in range(first, first + 4):
                engine.core.finish(f"r{i}")
            if not engine.core.load.active_requests + engine.core.load.waiting_requests:
                break
        return active

    assert flood(0) == 1
    assert flood(10) == 4


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_request_alone_runs_whatever_watermark_and_estimate_say(estimator: str) -> None:
    engine = CachedEngine(num_blocks=8, admission=AdmissionSettings(estimator=estimator, watermark=0.9))
    engine.add("a", prompt(20), max_tokens=13)
    engine.add("b", prompt(20), max_tokens=13)
    ended = engine.run()
    assert {request.state for request in ended.values()} == {RequestState.FINISHED}
    assert max(record.active_requests for record in engine.core.take_steps()) == 1


def test_the_watermark_keeps_blocks_free_for_those_that_run() -> None:
    def preemptions(watermark: float) -> int:
        settings = AdmissionSettings(estimator="optimistic", watermark=watermark)
        engine = CachedEngine(num_blocks=20, admission=settings, max_active_requests=8)
        for i in range(16):
            engine.add(f"r{i}", prompt(8, i), max_tokens=14)
        engine.run()
        return engine.core.totals.preemption_count

    assert preemptions(0.4) < preemptions(0.0)


def test_the_cap_on_kv_tokens_holds_back_and_is_never_exceeded() -> None:
    engine = CachedEngine(num_blocks=64, admission=AdmissionSettings(max_kv_tokens=32))
    for i in range(6):
        engine.add(f"r{i}", prompt(8, i), max_tokens=5)
    engine.run()
    records = engine.core.take_steps()
    # 3 blocks each, and the cap is 8 blocks: two at a time.
    assert max(record.active_requests for record in records) == 2
    assert max(record.kv_allocated_blocks for record in records) == 6


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_cap_on_kv_tokens_holds_also_for_those_that_grow(estimator: str) -> None:
    engine = CachedEngine(num_blocks=64, admission=AdmissionSettings(estimator=estimator, max_kv_tokens=40))
    for i in range(6):
        engine.add(f"r{i}", prompt(8, i), max_tokens=20)
    ended = engine.run()
    assert {request.state for request in ended.values()} == {RequestState.FINISHED}
    assert max(record.kv_allocated_blocks for record in engine.core.take_steps()) <= 10


def test_a_cap_that_is_lowered_below_what_runs_lets_one_go_on() -> None:
    engine = CachedEngine(num_blocks=64, admission=AdmissionSettings(estimator="optimistic"))
    for i in range(3):
        engine.add(f"r{i}", prompt(8, i), max_tokens=40)
    engine.step(10)
    engine.core.set_caps(Caps(max_context_tokens=512, max_active_requests=4, max_kv_tokens=8))
    ended = engine.run(max_steps=400)
    assert {request.state for request in ended.values()} == {RequestState.FINISHED}
    assert ended["r0"].preemptions == 0


def test_a_request_above_the_cap_on_kv_tokens_is_rejected_with_the_numbers() -> None:
    engine = CachedEngine(num_blocks=64, admission=AdmissionSettings(max_kv_tokens=32))
    engine.add("a", prompt(30), max_tokens=5)
    engine.step()
    assert engine.ended["a"].error == (
        "Request a can never run: 30 prompt tokens and max_tokens 5 need 36 KV tokens in blocks, above the cap "
        "max_kv_tokens of 32; raise the cap, shorten the prompt or lower max_tokens."
    )


def test_the_cap_on_kv_tokens_is_named_also_where_the_pool_is_too_small_by_itself() -> None:
    engine = CachedEngine(num_blocks=8, admission=AdmissionSettings(max_kv_tokens=16))
    engine.add("a", prompt(30), max_tokens=5)
    engine.step()
    assert "need 36 KV tokens in blocks, above the cap max_kv_tokens of 16; raise" in str(engine.ended["a"].error)
    larger = CachedEngine(num_blocks=8, admission=AdmissionSettings(max_kv_tokens=400))
    larger.add("a", prompt(30), max_tokens=5)
    larger.step()
    assert "need 9 KV blocks of 4 tokens, and the pool has 8; raise num_kv_blocks" in str(larger.ended["a"].error)


@pytest.mark.parametrize(("cap", "named"), [(32, ", max_kv_tokens: 32"), (48, ""), (None, "")])
def test_who_is_sent_away_learns_of_the_cap_that_leaves_no_room(cap: int | None, named: str) -> None:
    """4 blocks each: under the cap two fit, and three into the pool."""
    settings = AdmissionSettings(over_cap="reject", max_kv_tokens=cap)
    engine = CachedEngine(num_blocks=12, max_step_tokens=64, admission=settings)
    for i in range(4):
        engine.add(f"r{i}", prompt(8, i), max_tokens=9)
    engine.step()
    assert engine.ended["r3"].error == (
        "Request r3 was rejected: it finds too few KV blocks to start (needed: 4, free: 0, kept back of those: 0"
        f"{named}); send it again later."
    )


def test_reject_sends_away_who_finds_no_room_and_takes_who_does() -> None:
    engine = CachedEngine(num_blocks=12, max_step_tokens=64, admission=AdmissionSettings(over_cap="reject"))
    for i in range(5):
        engine.add(f"r{i}", prompt(8, i), max_tokens=9)
    # 4 blocks each: three fit, all three arriving at once.
    assert engine.step() == ["r3", "r4"]
    assert engine.ended["r3"].state is RequestState.REJECTED
    assert engine.ended["r3"].error == (
        "Request r3 was rejected: it finds too few KV blocks to start (needed: 4, free: 0, kept back of those: 0); "
        "send it again later."
    )
    engine.run()
    engine.add("r3", prompt(8, 3), max_tokens=9)
    assert engine.run()["r3"].state is RequestState.FINISHED


def test_reject_tells_of_the_cap_on_active_requests() -> None:
    engine = CachedEngine(max_active_requests=2, admission=AdmissionSettings(over_cap="reject"))
    for i in range(3):
        engine.add(f"r{i}", prompt(4, i), max_tokens=4)
    engine.step()
    assert engine.ended["r2"].error == (
        "Request r2 was rejected: every place is taken (active or about to be: 2, max_active_requests: 2); "
        "send it again later."
    )
    assert engine.core.totals.rejected_count == 1


def test_queue_rejects_who_has_waited_for_too_long_and_nobody_who_has_run() -> None:
    settings = AdmissionSettings(max_wait_s=20e-6)
    engine = CachedEngine(max_active_requests=1, admission=settings)
    engine.add("long", prompt(4), max_tokens=40)
    engine.add("waits", prompt(4), max_tokens=1)
    while "waits" not in engine.ended:
        engine.step()
    ended = engine.ended["waits"]
    assert ended.state is RequestState.REJECTED
    assert ended.error is not None
    assert ended.error.startswith("Request waits was rejected after waiting 2")
    assert "the limit max_wait_s is 2e-05 s" in ended.error
    assert engine.run()["long"].state is RequestState.FINISHED


def test_degrade_shortens_the_output_to_what_the_context_leaves() -> None:
    settings = AdmissionSettings(over_cap="degrade", min_output_tokens=4)
    engine = CachedEngine(num_blocks=256, admission=settings)
    engine.add("a", prompt(500), max_tokens=100)
    engine.add("hopeless", prompt(510), max_tokens=100)
    ended = engine.run()
    assert len(ended["a"].output) == 12
    assert end_of(ended["a"]).degraded == "max_tokens was cut from 100 to 12"
    assert ended["hopeless"].state is RequestState.REJECTED


def test_degrade_leaves_out_the_oldest_turns_but_not_the_system_prompt() -> None:
    settings = AdmissionSettings(over_cap="degrade", min_output_tokens=4)
    engine = CachedEngine(num_blocks=256, admission=settings)
    system, turns = prompt(10, 5), [prompt(200, 100), prompt(200, 200), prompt(150, 300)]
    whole = system + turns[0] + turns[1] + turns[2]
    request = engine.add("a", whole, max_tokens=50, terms=RequestTerms(turn_starts=(10, 210, 410)))
    ended = engine.run()["a"]
    assert ended.prompt_token_ids == system + turns[1] + turns[2]
    assert ended.degraded == "the oldest 200 prompt tokens were left out"
    assert len(request.output) == 50


def test_degrade_shortens_the_output_where_the_pool_is_nearly_full_and_never_a_forced_one() -> None:
    settings = AdmissionSettings(over_cap="degrade", min_output_tokens=4)
    engine = CachedEngine(num_blocks=10, admission=settings)
    engine.add("big", prompt(8), max_tokens=17)
    engine.add("cut", prompt(8, 50), max_tokens=17)
    forced = SamplingParams(max_tokens=17, forced_token_ids=tuple(range(17)))
    engine.core.add_request("forced", prompt(8, 90), forced)
    ended = engine.run()
    # big is promised 6 of 10 blocks: 16 slots are left, 8 for the prompt and 8 + 1 for the output.
    assert (len(ended["big"].output), len(ended["cut"].output)) == (17, 9)
    assert ended["cut"].degraded == "max_tokens was cut from 17 to 9"


def test_caps_change_while_the_engine_runs() -> None:
    engine = CachedEngine(max_active_requests=4, max_step_tokens=64)
    for i in range(4):
        engine.add(f"r{i}", prompt(8, i), max_tokens=9)
    engine.add("long", prompt(60), max_tokens=9)
    engine.step()
    engine.core.set_caps(Caps(max_context_tokens=64, max_active_requests=1))
    engine.add("r4", prompt(8), max_tokens=2)
    assert engine.step() == ["long"]
    assert engine.ended["long"].error is not None
    assert "make 69, above the context limit of 64" in engine.ended["long"].error
    assert engine.core.load.active_requests == 4
    engine.run()
    assert engine.ended["r4"].state is RequestState.FINISHED
    for caps, message in [
        (Caps(64, 65), "Caps.max_active_requests is 65; expected at most max_step_tokens"),
        (Caps(513, 4), "Caps.max_context_tokens is 513; expected at most 512"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            engine.core.set_caps(caps)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigurationError, match="estimator is 'hopeful'; expected one of guaranteed, past-future, opt"
    ):
        AdmissionSettings(estimator="hopeful")
    with pytest.raises(ConfigurationError, match="over_cap is 'drop'; expected one of reject, queue, degrade"):
        AdmissionSettings(over_cap="drop")
    with pytest.raises(ConfigurationError, match="'vip'; expected one of interactive, batch"):
        CachedEngine().add("a", prompt(3), max_tokens=1, terms=RequestTerms(slo_class="vip"))
