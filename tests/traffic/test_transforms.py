"""Transforms: what each keeps and changes, by hand and by property."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.traffic.records import SECOND, counted, patiently, session, workloads
from tests.traffic.word_tokenizer import WordTokenizer

from quantgate.traces.record import Message, TraceRecord
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.transforms import (
    Arrivals,
    Clip,
    Limit,
    RateCap,
    Sample,
    Speed,
    SpreadTicks,
    Thin,
    Transform,
    TransformContext,
    Transformed,
    Window,
    WorkloadTransform,
)
from quantgate_engine.errors import ConfigurationError


def context(seed: int = 0) -> TransformContext:
    return TransformContext(PromptEncoder(WordTokenizer(), seed), seed)


def ids(result: Transformed) -> list[str]:
    return [record.request_id for record in result.records]


def test_a_window_keeps_its_requests_and_starts_its_own_clock() -> None:
    records = [counted("a", 0.9), counted("b", 1), counted("c", 2.9), counted("d", 3)]
    result = Window(start_s=1, length_s=2).apply(records, context())
    assert [(r.request_id, r.scheduled_ns) for r in result.records] == [("b", 0), ("c", round(1.9 * SECOND))]
    assert result.rows_touched == 2


def test_a_window_takes_a_session_with_its_first_turn_or_not_at_all() -> None:
    records = sorted([*session("early", [0, 2]), *session("late", [2, 9])], key=lambda record: record.scheduled_ns)
    assert ids(Window(start_s=1, length_s=2).apply(records, context())) == ["late.1", "late.2"]


def test_twice_the_speed_halves_times_and_think_times() -> None:
    records = [counted("a", 0), counted("b", 3, session_id="s", turn=1, think_time_ns=SECOND)]
    result = Speed(factor=2).apply(records, context())
    assert [(r.scheduled_ns, r.think_time_ns) for r in result.records] == [(0, 0), (SECOND * 3 // 2, SECOND // 2)]
    assert result.rows_touched == 1


def test_a_trace_is_not_stretched_over_centuries() -> None:
    records = [counted("a", 0), counted("b", 900_000_000)]
    with pytest.raises(
        ConfigurationError, match=r"speed \(factor=0.001\) stretches the trace over 900000000000 s; exp"
    ):
        Speed(factor=0.001).apply(records, context())


def test_dropping_ends_a_session_at_its_first_long_turn() -> None:
    records = [*session("s", [0, 1, 2]), counted("long", 3, prompt=9), counted("talkative", 4, output=9)]
    records[1] = counted("s.2", 1, prompt=9, session_id="s", turn=2)
    result = Clip(max_prompt_tokens=8, max_output_tokens=8).apply(records, context())
    assert ids(result) == ["s.1"]
    assert result.rows_touched == 4


def test_cutting_shortens_counts_and_outputs_and_keeps_every_row() -> None:
    records = [counted("a", prompt=9, output=9), counted("b", prompt=8, output=8)]
    result = Clip(max_prompt_tokens=8, max_output_tokens=8, policy="cut").apply(records, context())
    assert [(r.prompt_token_count, r.max_tokens) for r in result.records] == [(8, 8), (8, 8)]
    assert result.rows_touched == 1


def test_cutting_a_text_keeps_the_end_of_its_prompt() -> None:
    chat = TraceRecord("a", 0, 1, messages=(Message("user", "alpha beta gamma"),))
    whole = context().encoder.encode(chat)
    (cut,) = Clip(max_prompt_tokens=3, policy="cut").apply([chat], context()).records
    assert cut.prompt_token_ids == whole[-3:]
    assert cut.messages is None
    assert context().encoder.count(cut) == 3


def test_a_limit_keeps_the_first_rows() -> None:
    result = Limit(requests=2).apply([counted("a"), counted("b"), counted("c")], context())
    assert (ids(result), result.rows_touched) == (["a", "b"], 1)


def test_thinning_keeps_about_its_share_and_depends_on_the_seed() -> None:
    records = [counted(f"r{number}") for number in range(4000)]
    kept = ids(Thin(keep=0.25).apply(records, context(1)))
    # Five standard deviations of a binomial count of 4,000 at 0.25.
    assert abs(len(kept) - 1000) < 5 * 27.4
    assert kept == ids(Thin(keep=0.25).apply(records, context(1)))
    assert kept != ids(Thin(keep=0.25).apply(records, context(2)))


@patiently
@given(workloads(), st.floats(0.01, 1), st.floats(0.01, 1), st.integers(0, 5))
def test_less_thinning_keeps_all_that_more_thinning_keeps(
    records: list[TraceRecord], one: float, other: float, seed: int
) -> None:
    few, many = sorted([one, other])
    assert set(ids(Thin(keep=few).apply(records, context(seed)))) <= set(
        ids(Thin(keep=many).apply(records, context(seed)))
    )


SOME_TRANSFORMS: st.SearchStrategy[Transform] = st.one_of(
    st.builds(Window, start_s=st.floats(0, 100), length_s=st.floats(1, 100)),
    st.builds(Speed, factor=st.floats(0.1, 10)),
    st.builds(Thin, keep=st.floats(0.05, 1)),
    st.builds(Limit, requests=st.integers(1, 60)),
    st.just(SpreadTicks(tick_s=1.0)),
    st.builds(Arrivals, process=st.just("gamma"), rate=st.floats(0.1, 10), cv=st.floats(0.1, 3)),
    st.builds(RateCap, rate=st.floats(0.1, 3), window_s=st.floats(10, 40)),
    st.builds(Sample, requests=st.integers(1, 60), length_edges=st.just((10, 30))),
    st.builds(
        Clip,
        max_prompt_tokens=st.integers(1, 50),
        max_output_tokens=st.integers(1, 50),
        policy=st.sampled_from(["drop", "cut"]),
    ),
)


@patiently
@given(workloads(), SOME_TRANSFORMS)
def test_every_transform_keeps_order_complete_turns_and_honest_counts(
    records: list[TraceRecord], transform: Transform
) -> None:
    before = list(records)
    result = transform.apply(records, context())
    assert records == before
    times = [record.scheduled_ns for record in result.records]
    assert times == sorted(times)
    assert all(time >= 0 for time in times)
    for turns in turns_by_session(result.records).values():
        assert turns == list(range(1, len(turns) + 1))
    shift_ns = round(transform.start_s * 1e9) if isinstance(transform, Window) else 0
    unshifted = [replace(record, scheduled_ns=record.scheduled_ns + shift_ns) for record in result.records]
    unchanged = len([record for record in unshifted if record in before])
    assert result.rows_touched == len(before) - unchanged


@patiently
@given(workloads(), st.sampled_from([Thin(keep=0.5), Window(start_s=20, length_s=40), RateCap(rate=0.2, window_s=10)]))
def test_thinning_and_windows_take_sessions_whole(records: list[TraceRecord], transform: Transform) -> None:
    everything = turns_by_session(records)
    for session_id, turns in turns_by_session(transform.apply(records, context()).records).items():
        assert turns == everything[session_id]


def turns_by_session(records: Sequence[TraceRecord]) -> dict[str, list[int]]:
    turns: dict[str, list[int]] = {}
    for record in records:
        if record.session_id is not None:
            turns.setdefault(record.session_id, []).append(record.turn)
    return turns


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "speed", "factor": 0},
        {"kind": "speed", "factor": float("inf")},
        {"kind": "thin", "keep": 1.5},
        {"kind": "window", "length_s": 0},
        {"kind": "limit", "requests": 0},
        {"kind": "spread_ticks", "tick_s": 0.001},
        {"kind": "arrivals", "process": "poisson"},
        {"kind": "rate_cap", "rate": 0.5},
        {"kind": "rate_cap", "rate": 0, "window_s": 10},
        {"kind": "sample", "requests": 0},
        {"kind": "sample", "requests": 5, "by": ["weather"]},
        {"kind": "clip", "policy": "squeeze"},
        {"kind": "speed", "factor": 2, "extra": 1},
        {"kind": "shuffle"},
    ],
)
def test_settings_without_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(WorkloadTransform).validate_python(settings)
