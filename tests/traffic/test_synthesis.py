"""Drawn traffic is of the fitted kind: rates, bursts, lengths, sessions, shared blocks. The seeds are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.traffic.records import SECOND, counted, patiently, session, workloads

from quantgate.traces.prompt_blocks import PromptBlocks
from quantgate.traces.record import TraceRecord
from quantgate.workload.synthesis.comparison import asked_figures, found_figures
from quantgate.workload.synthesis.draw import draw_traffic
from quantgate.workload.synthesis.fit import TrafficFit, fit_traffic
from quantgate_engine.errors import ConfigurationError

LEVEL = 0.01
SEEDS = range(10)
WINDOW_S = 100.0


def recorded(cv: float) -> list[TraceRecord]:
    """Gamma gaps; 100 s of 2 requests per second with short prompts, then 100 s of 8 with long ones."""
    draws = np.random.default_rng(7)
    records: list[TraceRecord] = []
    at = 0.0
    while at < 200.0:
        late = at >= 100.0
        prompt = int(draws.integers(1000, 2000) if late else draws.integers(10, 100))
        records.append(counted(f"r{len(records)}", at, prompt, 2 * prompt))
        at += float(draws.gamma(1 / cv**2, cv**2)) / (8.0 if late else 2.0)
    return records


def again(fit: TrafficFit, seed: int, *, duration_s: float | None = None, speed: float = 1.0) -> list[TraceRecord]:
    return draw_traffic(fit, duration_s=duration_s or fit.duration_s, rate_rps=fit.rate_rps * speed, seed=seed)


def times(records: Sequence[TraceRecord]) -> list[float]:
    return [record.scheduled_ns / SECOND for record in records]


def gap_p_values(cv: float, drawn_by: float) -> list[float]:
    """Of drawn gaps in the first window against the gamma distribution of `cv`."""
    fit = fit_traffic(recorded(drawn_by), WINDOW_S)
    rate, own_cv = fit.windows[0].rate, fit.windows[0].gap_cv * cv / drawn_by
    p_values = []
    for seed in SEEDS:
        first = [at for at in times(again(fit, seed, duration_s=10 * fit.duration_s)) if at < 10 * WINDOW_S]
        gaps = [right - left for left, right in pairwise(first)]
        p_values.append(float(stats.kstest(gaps, stats.gamma(1 / own_cv**2, scale=own_cv**2 / rate).cdf).pvalue))
    return p_values


@pytest.mark.parametrize("cv", [0.5, 2.0])
def test_gaps_are_of_the_recorded_burstiness_and_a_wrong_one_shows(cv: float) -> None:
    assert min(gap_p_values(cv, cv)) > LEVEL / len(SEEDS)
    assert max(gap_p_values(1.0, cv)) < LEVEL / len(SEEDS)


def test_each_window_has_its_rate() -> None:
    fit = fit_traffic(recorded(1.0), WINDOW_S)
    counts = [sum(at < 100.0 for at in times(again(fit, seed))) for seed in SEEDS]
    rest = [len(again(fit, seed)) - count for seed, count in zip(SEEDS, counts, strict=True)]
    for window, found in zip(fit.windows, (counts, rest), strict=True):
        expected = window.rate * window.length_s * len(SEEDS)
        deviation = window.gap_cv * expected**0.5
        assert abs(sum(found) - expected) < stats.norm.ppf(1 - LEVEL / 4) * deviation
    assert sum(rest) > 3 * sum(counts)
    # Not bent to a total.
    assert len(set(counts)) > 3


def test_lengths_are_those_of_their_window_in_pairs() -> None:
    records = recorded(1.0)
    fit = fit_traffic(records, WINDOW_S)
    early = [record.prompt_token_count or 0 for record in records if record.scheduled_ns < 100 * SECOND]
    for seed in SEEDS:
        drawn = again(fit, seed)
        assert all(record.max_tokens == 2 * (record.prompt_token_count or 0) for record in drawn)
        lengths = [record.prompt_token_count or 0 for record in drawn if record.scheduled_ns < 100 * SECOND]
        assert stats.ks_2samp(lengths, early).pvalue > LEVEL / len(SEEDS)
        everywhere = [record.prompt_token_count or 0 for record in drawn]
        assert stats.ks_2samp(everywhere, early).pvalue < LEVEL / len(SEEDS)


def test_duration_stretches_the_windows_and_rate_fills_them() -> None:
    fit = fit_traffic(recorded(1.0), WINDOW_S)
    drawn = again(fit, 0, duration_s=fit.duration_s / 2, speed=4.0)
    assert len(drawn) == pytest.approx(2 * fit.rows, rel=0.1)
    assert times(drawn)[-1] < fit.duration_s / 2
    assert sum(at < 50.0 for at in times(drawn)) == pytest.approx(len(drawn) / 5, rel=0.25)


def test_sessions_are_repeated_whole() -> None:
    records = [
        *session("a", [0.0, 3.0, 9.0], think_time_ns=0),
        counted("x", 10.0),
        *session("b", [20.0, 21.0], slo_class="batch"),
    ]
    fit = fit_traffic(records, WINDOW_S)
    drawn = draw_traffic(fit, duration_s=1000.0, rate_rps=1.0, seed=3)
    turns: dict[str, list[TraceRecord]] = {}
    for record in drawn:
        turns.setdefault(record.session_id or record.request_id, []).append(record)
    shapes = {
        tuple(round((turn.scheduled_ns - unit[0].scheduled_ns) / SECOND) for turn in unit) for unit in turns.values()
    }
    assert shapes == {(0, 3, 9), (0,), (0, 1)}
    assert all([turn.turn for turn in unit] == list(range(1, len(unit) + 1)) for unit in turns.values())
    assert asked_figures(fit, 1.0)["turns_per_session"] == 2.5


def test_common_blocks_stay_common_and_private_ones_stay_private() -> None:
    records = [
        counted(f"r{number}", float(number), 64, prompt_blocks=PromptBlocks((1, 10 + number), 32))
        for number in range(9)
    ]
    fit = fit_traffic(records, WINDOW_S)
    drawn = draw_traffic(fit, duration_s=500.0, rate_rps=1.0, seed=0)
    ids = [record.prompt_blocks.ids for record in drawn if record.prompt_blocks is not None]
    assert {first for first, _ in ids} == {1}
    assert len({second for _, second in ids}) == len(drawn) > 100
    assert found_figures(drawn, 500.0, 500.0)["shared_share"] == pytest.approx(0.5, abs=0.01)


def test_texts_leave_only_lengths() -> None:
    text = TraceRecord("a", 0, 3, prompt_text="secret", prompt_token_count=7)
    fit = fit_traffic([text, counted("b", 5.0)], WINDOW_S)
    drawn = draw_traffic(fit, duration_s=100.0, rate_rps=1.0, seed=0)
    assert not any(record.has_text for record in drawn)
    assert {record.prompt_token_count for record in drawn} == {7, 4}


def test_even_traffic_stays_even() -> None:
    drawn = again(fit_traffic([counted(f"r{at}", float(at)) for at in range(30)], WINDOW_S), 0)
    assert {round(right - left, 6) for left, right in pairwise(times(drawn))} == {1.0}


def test_what_cannot_be_fitted_or_drawn_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="start at one moment"):
        fit_traffic([counted("a"), counted("b")], WINDOW_S)
    with pytest.raises(ConfigurationError, match="how long the prompt of request 'a' is; give the tokenizer"):
        fit_traffic([TraceRecord("a", 0, 3, prompt_text="hi"), counted("b", 5.0)], WINDOW_S)
    two = [counted("a"), counted("b", 5.0)]
    with pytest.raises(ConfigurationError, match="windows of 1e-07 s"):
        fit_traffic(two, 1e-7)
    with pytest.raises(ConfigurationError, match="10,000,000 requests"):
        draw_traffic(fit_traffic(two, 60.0), duration_s=1e6, rate_rps=1e6, seed=0)
    with pytest.raises(ConfigurationError, match="No request came"):
        draw_traffic(fit_traffic(two, 60.0), duration_s=1e-6, rate_rps=1e-6, seed=0)


@patiently
@given(records=workloads(), window_s=st.integers(1, 50), seed=st.integers(0, 3))
def test_any_draw_is_a_trace_in_order_of_recorded_units(records: list[TraceRecord], window_s: int, seed: int) -> None:
    try:
        fit = fit_traffic(records, window_s)
        drawn = draw_traffic(fit, duration_s=50.0, rate_rps=2.0, seed=seed)
    except ConfigurationError:
        return
    assert times(drawn) == sorted(times(drawn))
    assert len({record.request_id for record in drawn}) == len(drawn)
    pairs = {(record.prompt_token_count, record.max_tokens) for record in records}
    assert {(record.prompt_token_count, record.max_tokens) for record in drawn} <= pairs
    assert sum(len(window.units) for window in fit.windows) == fit.units
    assert drawn == draw_traffic(fit, duration_s=50.0, rate_rps=2.0, seed=seed)
