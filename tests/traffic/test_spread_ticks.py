"""A coarse clock's ticks are taken out: uniform inside each tick, in order, every tick with its count."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest
from tests.traffic.records import SECOND, counted, patiently, session, workloads
from tests.traffic.word_tokenizer import WordTokenizer

from quantgate.traces.record import TraceRecord
from quantgate.traces.traffic_shape import describe
from quantgate.workload.build_plan import apply_transforms
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.transforms import SpreadTicks, TransformContext
from quantgate_engine.errors import ConfigurationError

MILLISECOND = SECOND // 1000


def context(seed: int = 0) -> TransformContext:
    return TransformContext(PromptEncoder(WordTokenizer(), seed), seed)


def ticking(ticks: int, jitter_ms: int = 0) -> list[TraceRecord]:
    """A Poisson process of 3 requests a second, by a clock that ticks every 3 s or so; one tick in ten is silent."""
    draws = np.random.default_rng(5)
    records: list[TraceRecord] = []
    for tick in range(1, ticks + 1):
        stamp_ms = tick * 3000 + int(draws.integers(-jitter_ms, jitter_ms + 1))
        for _ in range(int(draws.poisson(9)) if tick % 10 else 0):
            records.append(counted(f"r{len(records)}", stamp_ms / 1000))
    return records


def places(before: list[TraceRecord], after: list[TraceRecord], step_ns: int) -> list[float]:
    """Where in its former tick each request is now, from 0 up to 1."""
    stamps = sorted({record.scheduled_ns for record in before})
    length_of = {
        stamp: later - stamp if later - stamp < 1.5 * step_ns else step_ns for stamp, later in pairwise(stamps)
    } | {stamps[-1]: step_ns}
    return [
        (new.scheduled_ns - old.scheduled_ns) / length_of[old.scheduled_ns]
        for old, new in zip(before, after, strict=True)
    ]


@pytest.mark.parametrize("jitter_ms", [0, 3])
@pytest.mark.parametrize("seed", range(5))
def test_places_inside_ticks_are_even_and_counts_are_those_of_a_poisson_process(jitter_ms: int, seed: int) -> None:
    before = ticking(1200, jitter_ms)
    result = SpreadTicks().apply(before, context(seed))
    inside = places(before, result.records, 3 * SECOND)
    assert min(inside) >= 0
    assert max(inside) < 1
    assert kstest(inside, "uniform").pvalue > 0.01
    assert result.details["tick_s"] == pytest.approx(3.0, abs=0.001)
    assert result.details["tick_found"] is True
    assert result.details["ticks"] == len({record.scheduled_ns for record in before})
    # Silent ticks apart, which are no part of the process.
    spread = [count for count in _counts_by_second(result.records) if count is not None]
    assert np.var(spread) / np.mean(spread) == pytest.approx(1.0, abs=4 * (2 / len(spread)) ** 0.5)
    assert (describe(before).counts[0].variance_to_mean or 0) > 5


def _counts_by_second(records: list[TraceRecord]) -> list[int | None]:
    counts = Counter(record.scheduled_ns // SECOND for record in records)
    return [None if (second // 3) % 10 == 0 else counts[second] for second in range(6, 3600)]


@patiently
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 6)), min_size=12, max_size=40), st.integers(0, 9))
def test_order_and_the_count_of_every_tick_are_kept(steps: list[tuple[int, int]], seed: int) -> None:
    before: list[TraceRecord] = []
    at_s = 0
    for gap, count in steps:
        at_s += gap
        before += [counted(f"{at_s}.{number}", at_s) for number in range(count)]
    result = SpreadTicks(tick_s=1.0).apply(before, context(seed))
    assert [record.request_id for record in result.records] == [record.request_id for record in before]
    times = [record.scheduled_ns for record in result.records]
    assert times == sorted(times)
    # Each stays in the second that its tick began.
    assert [time // SECOND for time in times] == [record.scheduled_ns // SECOND for record in before]
    assert result.rows_touched == sum(new != old for new, old in zip(result.records, before, strict=True))


@patiently
@given(workloads())
def test_turns_stay_in_order(records: list[TraceRecord]) -> None:
    after = SpreadTicks(tick_s=1.0).apply(records, context()).records
    seen: dict[str, int] = {}
    for record in sorted(after, key=lambda record: record.scheduled_ns):
        if record.session_id is not None:
            assert record.turn == seen.get(record.session_id, 0) + 1
            seen[record.session_id] = record.turn


def test_the_seed_decides() -> None:
    before = ticking(40)
    one, same, other = (SpreadTicks().apply(before, context(seed)).records for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_what_it_did_is_recorded_for_the_certificate() -> None:
    before = ticking(40)
    _, (step,) = apply_transforms(before, [SpreadTicks()], context())
    assert (step.name, step.rows_in, step.rows_out) == ("spread_ticks", len(before), len(before))
    # One in some 3e9 stays where it was.
    assert step.rows_touched == len(before)
    assert step.parameters == {"tick_s": 3.0, "tick_found": True, "ticks": 36}


def test_think_times_stay() -> None:
    before = session("s", [0, 0, 3], think_time_ns=SECOND)
    assert {record.think_time_ns for record in SpreadTicks(tick_s=3).apply(before, context()).records} == {SECOND}


def refusal(transform: SpreadTicks, records: list[TraceRecord]) -> str:
    with pytest.raises(ConfigurationError) as refused:
        transform.apply(records, context())
    return str(refused.value)


def test_a_trace_without_ticks_is_refused() -> None:
    draws = random.Random(1)
    records = [
        counted(f"r{number}", at_s) for number, at_s in enumerate(sorted(draws.uniform(0, 99) for _ in range(99)))
    ]
    assert refusal(SpreadTicks(), records) == (
        "The transform spread_ticks finds no clock that ticks: the 99 requests have no common step above 1 ms, or too "
        "few distinct times to show one; leave the transform out, or give tick_s."
    )
    assert "finds requests" in refusal(SpreadTicks(tick_s=3.0), records)


def test_a_steady_client_is_not_disturbed_unless_it_is_asked_for() -> None:
    records = [counted(f"r{number}", number / 4) for number in range(40)]
    assert "finds times at multiples of 0.25 s, but no two requests at one of them" in refusal(SpreadTicks(), records)
    assert SpreadTicks(tick_s=0.25).apply(records, context()).details == {
        "tick_s": 0.25, "tick_found": False, "ticks": 40
    }  # fmt: skip


def test_a_clock_that_ticks_faster_than_given_is_told() -> None:
    assert refusal(SpreadTicks(tick_s=3.0), [counted("a", 0), counted("b", 1)]) == (
        "The transform spread_ticks (tick_s=3.0) finds requests 1 s apart, so that the clock does not tick every 3.0 s"
        "; mend tick_s or leave the transform out."
    )
