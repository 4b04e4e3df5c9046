"""Batch modes, length buckets, SLO classes and the limits on prefills."""

from __future__ import annotations

import pytest
from tests.engine.cached_engine import CachedEngine
from tests.engine.simulation import prompt

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.slo_class import SLOClass

BATCH_TERMS = RequestTerms(slo_class="batch")


def _kinds(engine: CachedEngine) -> list[tuple[int, int]]:
    return [(record.batch_size_prefill, record.batch_size_decode) for record in engine.core.take_steps()]


def _first_steps(engine: CachedEngine) -> list[str]:
    """Requests in the order in which they were first in a step."""
    return list(dict.fromkeys(sequence.request_id for step in engine.executor.steps for sequence in step))


def _admitted(engine: CachedEngine) -> list[str]:
    order = sorted(engine.ended.values(), key=lambda request: (request.admitted_ns or 0, request.admission_number))
    return [request.request_id for request in order]


@pytest.mark.parametrize("mode", ["mixed", "split", "static"])
def test_every_mode_gives_the_same_tokens(mode: str) -> None:
    engine = CachedEngine(batching=BatchingSettings(mode=mode))
    for i in range(9):
        engine.add(f"r{i}", prompt(3 + 5 * i, i), max_tokens=1 + 2 * i, seed=i)
    assert len(engine.run()) == 9


def test_split_steps_are_all_prefill_or_all_decode_and_take_turns() -> None:
    engine = CachedEngine(batching=BatchingSettings(mode="split"), max_step_tokens=8)
    engine.add("a", prompt(4), max_tokens=6)
    engine.step()
    engine.add("b", prompt(24), max_tokens=2)
    engine.run()
    kinds = _kinds(engine)
    assert all(not (prefills and decodes) for prefills, decodes in kinds)
    assert kinds == [(1, 0), (0, 1), (1, 0), (0, 1), (1, 0), (0, 1), (1, 0), (0, 2), (0, 1)]


def test_static_batches_run_to_their_end_before_the_next_one_starts() -> None:
    engine = CachedEngine(batching=BatchingSettings(mode="static"), max_active_requests=3, max_step_tokens=16)
    for i, tokens in enumerate([2, 9, 4, 3, 3]):
        engine.add(f"r{i}", prompt(8, i), max_tokens=tokens)
    engine.run()
    ended = engine.ended
    # The first three are one batch, prefilled in two steps; r3 and r4 wait until r1, the longest, is done.
    assert {ended[name].admitted_ns for name in ("r0", "r1", "r2")} == {0}
    assert ended["r3"].admitted_ns == ended["r4"].admitted_ns == ended["r1"].finished_ns
    assert _kinds(engine)[:3] == [(2, 0), (1, 0), (0, 3)]


def test_continuous_batching_ends_sooner_than_static() -> None:
    def duration(mode: str) -> int:
        engine = CachedEngine(batching=BatchingSettings(mode=mode))
        for i in range(24):
            engine.add(f"r{i}", prompt(4, i), max_tokens=2 + 17 * (i % 3))
        engine.run()
        return engine.clock.now_ns()

    assert duration("mixed") < 0.85 * duration("static")


def test_shorter_buckets_go_first_and_inside_one_the_order_is_that_of_arrival() -> None:
    engine = CachedEngine(batching=BatchingSettings(length_buckets=(8, 16)), max_active_requests=1, max_overtakes=50)
    for name, length in [("huge", 40), ("mid-1", 12), ("small-1", 5), ("mid-2", 16), ("small-2", 8), ("big", 17)]:
        engine.add(name, prompt(length), max_tokens=1)
    engine.run()
    assert _admitted(engine) == ["small-1", "small-2", "mid-1", "mid-2", "huge", "big"]


def test_a_long_prompt_is_overtaken_by_shorter_ones_only_so_often() -> None:
    engine = CachedEngine(batching=BatchingSettings(length_buckets=(8,)), max_active_requests=1, max_overtakes=3)
    engine.add("busy", prompt(4), max_tokens=3)
    engine.step()
    engine.add("long", prompt(30), max_tokens=1)
    for i in range(8):
        engine.add(f"s{i}", prompt(4, i), max_tokens=1)
    engine.run()
    assert _admitted(engine)[:6] == ["busy", "s0", "s1", "s2", "long", "s3"]
    assert engine.ended["long"].times_overtaken == 3


def test_the_urgent_class_goes_first_and_the_other_does_not_starve() -> None:
    engine = CachedEngine(max_active_requests=1, max_overtakes=4)
    for i in range(3):
        engine.add(f"batch-{i}", prompt(4, i), max_tokens=1, terms=BATCH_TERMS)
    for i in range(9):
        engine.add(f"chat-{i}", prompt(4, 50 + i), max_tokens=1)
    engine.run()
    order = _admitted(engine)
    assert order[:4] == [f"chat-{i}" for i in range(4)]
    # The head of the batch lane is overtaken four times; then the next head ages in its turn.
    assert order.index("batch-0") == 4
    assert order.index("batch-1") <= 9
    assert max(request.times_overtaken for request in engine.ended.values()) == 4


def test_an_interactive_request_goes_before_all_others_after_its_maximum_wait() -> None:
    classes = (SLOClass("chat"), SLOClass("slow", max_wait_s=4e-6))
    engine = CachedEngine(batching=BatchingSettings(slo_classes=classes), max_active_requests=1, max_overtakes=100)
    engine.add("slow", prompt(4), max_tokens=1, terms=RequestTerms(slo_class="slow"))
    for i in range(9):
        engine.add(f"chat-{i}", prompt(4, i), max_tokens=1)
    engine.run()
    # A step takes 1.04 us: after four of them the wait is over.
    assert _admitted(engine).index("slow") == 4


def test_reserved_places_are_free_for_an_urgent_request_also_after_a_flood_of_others() -> None:
    classes = (SLOClass("chat", reserved_active=1), SLOClass("batch"))
    engine = CachedEngine(batching=BatchingSettings(slo_classes=classes), max_active_requests=3, max_step_tokens=64)
    for i in range(6):
        engine.add(f"batch-{i}", prompt(4, i), max_tokens=9, terms=BATCH_TERMS)
    engine.step()
    assert engine.core.load.active_requests == 2
    chat = engine.add("chat", prompt(4), max_tokens=9)
    engine.step()
    assert chat.admitted_ns is not None
    assert len(engine.run()) == 7


def test_more_reserved_places_than_there_are_is_refused() -> None:
    classes = (SLOClass("chat", reserved_active=5), SLOClass("batch"))
    with pytest.raises(ConfigurationError, match=r"max_active_requests is 4; expected at least 5, the places"):
        CachedEngine(batching=BatchingSettings(slo_classes=classes))


def test_a_class_prefills_no_more_at_once_than_it_may() -> None:
    classes = (SLOClass("chat", max_prefills=2), SLOClass("batch"))
    engine = CachedEngine(batching=BatchingSettings(slo_classes=classes), max_step_tokens=64)
    for i in range(4):
        engine.add(f"chat-{i}", prompt(4, i), max_tokens=2)
    engine.step()
    assert _kinds(engine) == [(2, 0)]


def test_partial_and_long_prefills_are_limited() -> None:
    settings = BatchingSettings(max_partial_prefills=2, long_prefill_tokens=20, max_long_prefills=1, max_chunk_tokens=4)
    engine = CachedEngine(batching=settings, max_step_tokens=16, max_overtakes=20)
    for name, length in [("long-1", 40), ("long-2", 40), ("short-1", 8), ("short-2", 8)]:
        engine.add(name, prompt(length), max_tokens=1)
    engine.run()
    for step in engine.executor.steps:
        names = [sequence.request_id for sequence in step]
        assert len(names) <= 2
        assert not {"long-1", "long-2"} <= set(names)
        assert max(len(sequence.token_ids) for sequence in step) <= 4
    assert _first_steps(engine) == ["long-1", "short-1", "short-2", "long-2"]


def test_without_chunks_a_prompt_goes_in_one_piece_also_above_the_budget() -> None:
    engine = CachedEngine(batching=BatchingSettings(chunked_prefill=False), max_step_tokens=16)
    for name, length in [("a", 10), ("b", 10), ("huge", 40), ("c", 5)]:
        engine.add(name, prompt(length), max_tokens=1)
    engine.run()
    chunks = [
        (sequence.request_id, len(sequence.token_ids))
        for step in engine.executor.steps
        for sequence in step
        if sequence.start_position == 0
    ]
    assert sorted(chunks) == [("a", 10), ("b", 10), ("c", 5), ("huge", 40)]


def test_chunks_keep_a_long_prompt_from_stalling_the_others() -> None:
    def longest_gap(chunked: bool) -> int:
        engine = CachedEngine(
            num_blocks=256, batching=BatchingSettings(chunked_prefill=chunked), max_step_tokens=16, max_overtakes=3
        )
        engine.add("chat", prompt(4), max_tokens=60)
        engine.step(3)
        engine.add("long", prompt(400), max_tokens=1)
        engine.run()
        return max(record.duration_ns for record in engine.core.take_steps() if record.batch_size_decode)

    assert longest_gap(chunked=True) < longest_gap(chunked=False) / 2


def test_wrong_settings_are_refused_in_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="mode is 'dynamic'; expected one of mixed, split, static"):
        BatchingSettings(mode="dynamic")
    with pytest.raises(ConfigurationError, match=r"length_buckets is \(5, 5\); expected rising lengths"):
        BatchingSettings(length_buckets=(5, 5))
    with pytest.raises(ConfigurationError, match="no name twice"):
        BatchingSettings(slo_classes=(SLOClass("a"), SLOClass("a")))
