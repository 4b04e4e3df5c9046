"""Coarse clocks are found by their step, even or not; traffic that only looks a little regular is no clock."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import SECOND, patiently

from quantgate.traces.shape.clock import ClockTicks, ClockWatch

MILLISECOND = SECOND // 1000


def ticks_of(times_ns: list[int], piece: int = 1 << 30) -> ClockTicks | None:
    watch = ClockWatch()
    for start in range(0, len(times_ns), piece):
        watch.add(np.array(times_ns[start : start + piece], dtype=np.int64))
    return watch.ticks()


def poisson(rows: int, mean_gap_s: float, seed: int = 1) -> list[int]:
    draws = random.Random(seed)
    times, now_s = [], 0.0
    for _ in range(rows):
        now_s += draws.expovariate(1 / mean_gap_s)
        times.append(round(now_s * SECOND))
    return times


def uneven(ticks: int, jitter_ms: int) -> list[int]:
    """Three requests every 3 s or so; every seventh tick has none."""
    draws = random.Random(2)
    stamps = [tick * 3000 + draws.randint(-jitter_ms, jitter_ms) for tick in range(1, ticks) if tick % 7]
    return [stamp * MILLISECOND for stamp in stamps for _ in range(3)]


@pytest.mark.parametrize(("step_s", "mean_gap_s"), [(1.0, 0.2), (3.0, 0.3), (0.1, 0.5), (1.0, 5.0)])
def test_an_even_clock_is_found_with_its_exact_step(step_s: float, mean_gap_s: float) -> None:
    step_ns = round(step_s * SECOND)
    times = [time // step_ns * step_ns for time in poisson(400, mean_gap_s)]
    found = ticks_of(times)
    assert found is not None
    distinct = sorted(set(times))
    assert (found.step_s, found.jitter_s, found.ticks) == (step_s, 0.0, len(distinct))
    assert found.rows_per_tick == 400 / len(distinct)
    assert found.most_rows_per_tick == max(times.count(time) for time in distinct)


@pytest.mark.parametrize("jitter_ms", [1, 3, 25])
def test_a_clock_with_uneven_ticks_and_silences_is_found(jitter_ms: int) -> None:
    found = ticks_of(uneven(300, jitter_ms))
    assert found is not None
    assert found.step_s == pytest.approx(3.0, abs=0.001)
    assert 0 < found.jitter_s <= 2 * jitter_ms / 1000 + 0.001
    assert (found.rows_per_tick, found.most_rows_per_tick) == (3.0, 3)


@pytest.mark.parametrize(
    "times",
    [
        poisson(3000, 0.2),
        [time // MILLISECOND * MILLISECOND for time in poisson(3000, 0.2)],
        # Few a minute, to the millisecond, and now and then two at once.
        sorted([time // MILLISECOND * MILLISECOND for time in poisson(300, 20.0)] * 2),
        uneven(300, 200),
        [number * SECOND for number in range(5) for _ in range(50)],
        [7 * SECOND] * 500,
    ],
    ids=["ns", "ms", "pairs", "too uneven", "five times", "one time"],
)
def test_other_traffic_has_no_ticks(times: list[int]) -> None:
    assert ticks_of(times) is None


def test_a_steady_client_with_some_jitter_is_no_clock() -> None:
    draws = random.Random(3)
    assert ticks_of([number * SECOND + draws.randint(0, 9 * MILLISECOND) for number in range(500)]) is None


@pytest.mark.parametrize("piece", [1, 2, 3, 4, 7])
def test_a_tick_may_lie_astride_several_batches(piece: int) -> None:
    # The third tick has five requests, the others two.
    times = sorted([tick * SECOND for tick in range(20) for _ in range(2)] + [2 * SECOND] * 3)
    found = ticks_of(times, piece)
    assert found is not None
    assert (found.ticks, found.most_rows_per_tick) == (20, 5)


@patiently
@given(
    st.one_of(
        st.lists(st.integers(0, 40), min_size=1, max_size=80).map(lambda steps: [step * SECOND for step in steps]),
        st.integers(1, 30).map(lambda ticks: uneven(ticks, 3)),
        st.lists(st.integers(0, 10**12), min_size=1, max_size=80),
    ),
    st.integers(1, 30),
)
def test_ticks_do_not_depend_on_how_rows_were_cut(times: list[int], piece: int) -> None:
    if times:
        assert ticks_of(sorted(times), piece) == ticks_of(sorted(times))
