"""The transform `arrivals`: units in their order, at the times of the process that was asked for.

Whether the times are those of the process is a matter of statistics: `test_arrival_processes.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.traffic.records import SECOND, counted, patiently, session, workloads
from tests.traffic.word_tokenizer import WordTokenizer

from quantgate.problem import first_problem
from quantgate.traces.record import TraceRecord
from quantgate.workload.build_plan import apply_transforms
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.transforms import Arrivals, TransformContext
from quantgate.workload.transforms.sessions import group_units
from quantgate_engine.errors import ConfigurationError

ENCODER = PromptEncoder(WordTokenizer(), 0)

ALIKE_AT_ANY_LENGTH = st.one_of(
    st.builds(Arrivals, process=st.sampled_from(["constant", "poisson"]), rate=st.floats(0.01, 1000)),
    st.builds(Arrivals, process=st.just("gamma"), rate=st.floats(0.01, 1000), cv=st.floats(0.01, 100)),
)
RAMPS = st.builds(Arrivals, process=st.just("ramp"), rate=st.floats(1e-3, 1e6), to_rate=st.floats(1e-3, 1e6))


def arrived(records: list[TraceRecord], arrivals: Arrivals, seed: int = 0) -> list[TraceRecord]:
    return arrivals.apply(records, TransformContext(ENCODER, seed)).records


def starts_ns(records: list[TraceRecord]) -> list[int]:
    return [unit[0].scheduled_ns for unit in group_units(records).values()]


def test_constant_arrivals_come_at_equal_gaps_from_the_first_gap_on() -> None:
    records = [counted("a", 7), counted("b", 7), counted("c", 99)]
    result = Arrivals(process="constant", rate=3).apply(records, TransformContext(ENCODER, 0))
    assert [(r.request_id, r.scheduled_ns) for r in result.records] == [
        ("a", 333_333_333),
        ("b", 666_666_667),
        ("c", 1_000_000_000),
    ]
    assert result.rows_touched == 3


def test_a_session_moves_as_a_whole_and_keeps_its_think_times() -> None:
    records = [counted("a", 0), *session("s", [10, 10.5, 14], think_time_ns=SECOND // 4), counted("b", 15)]
    kept = arrived(records, Arrivals(process="constant", rate=1))
    assert [(r.request_id, r.scheduled_ns / SECOND) for r in kept] == [
        ("a", 1.0),
        ("s.1", 2.0),
        ("s.2", 2.5),
        ("b", 3.0),
        ("s.3", 6.0),
    ]
    assert {r.think_time_ns for r in kept if r.session_id} == {SECOND // 4}


def test_the_seed_draws_and_the_same_seed_draws_the_same() -> None:
    records = [counted(f"r{number}") for number in range(20)]
    poisson = Arrivals(process="poisson", rate=2)
    assert arrived(records, poisson, seed=1) == arrived(records, poisson, seed=1)
    assert starts_ns(arrived(records, poisson, seed=1)) != starts_ns(arrived(records, poisson, seed=2))


def test_twice_the_rate_is_the_same_arrivals_in_half_the_time() -> None:
    records = [counted(f"r{number}") for number in range(20)]
    slow = starts_ns(arrived(records, Arrivals(process="gamma", rate=2, cv=3)))
    fast = starts_ns(arrived(records, Arrivals(process="gamma", rate=4, cv=3)))
    assert fast == pytest.approx([start / 2 for start in slow], abs=1)


@patiently
@given(workloads(), st.one_of(ALIKE_AT_ANY_LENGTH, RAMPS), st.integers(0, 5))
def test_units_keep_their_order(records: list[TraceRecord], arrivals: Arrivals, seed: int) -> None:
    result = arrived(records, arrivals, seed)
    assert list(group_units(result)) == list(group_units(records))
    assert starts_ns(result) == sorted(starts_ns(result))
    assert [r.scheduled_ns for r in result] == sorted(r.scheduled_ns for r in result)


@patiently
@given(workloads(), ALIKE_AT_ANY_LENGTH, st.integers(0, 5), st.data())
def test_a_longer_trace_only_adds_arrivals_at_the_end(
    records: list[TraceRecord], arrivals: Arrivals, seed: int, data: st.DataObject
) -> None:
    units = list(group_units(records).values())
    shorter = units[: data.draw(st.integers(1, len(units)))]
    of_shorter = [record for record in records if any(record in unit for unit in shorter)]
    whole = starts_ns(arrived(records, arrivals, seed))
    assert starts_ns(arrived(of_shorter, arrivals, seed)) == whole[: len(shorter)]


def test_the_record_tells_what_was_asked_and_what_was_found() -> None:
    records = [*session("s", [0, 1]), *(counted(f"r{number}", 2) for number in range(999))]
    arrivals = Arrivals(process="gamma", rate=5, cv=2)
    moved, (step,) = apply_transforms(records, [arrivals], TransformContext(ENCODER, 3))
    found = step.parameters
    assert {key: found[key] for key in ("process", "rate", "cv", "to_rate", "starts", "cv_asked")} == {
        "process": "gamma", "rate": 5.0, "cv": 2.0, "to_rate": None, "starts": 1000, "cv_asked": 2.0,
    }  # fmt: skip
    assert found["rate_found"] == pytest.approx(1000 / (max(starts_ns(moved)) / SECOND), abs=1e-6)
    # Three standard errors of the mean gap: cv / sqrt(1000) of it.
    assert found["rate_found"] == pytest.approx(5, rel=0.19)
    assert found["rate_found"] != 5
    assert found["cv_found"] == pytest.approx(2, rel=0.25)
    assert (step.rows_in, step.rows_out) == (1001, 1001)


@pytest.mark.parametrize(("process", "cv"), [("constant", 0.0), ("poisson", 1.0)])
def test_processes_without_the_setting_have_a_burstiness_too(process: Any, cv: float) -> None:
    result = Arrivals(process=process, rate=1).apply([counted("a")], TransformContext(ENCODER, 0))
    assert (result.details["cv_asked"], result.details["cv_found"]) == (cv, None)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"rate": 1}, "field process: this key is missing; add it."),
        ({"process": "poisson"}, "field rate: this key is missing; add it."),
        (
            {"process": "pareto", "rate": 1},
            "field process: expected 'constant', 'poisson', 'gamma' or 'ramp', got 'pareto'.",
        ),
        ({"process": "poisson", "rate": 0}, "field rate: expected a value above 0, got 0."),
        ({"process": "poisson", "rate": 2e6}, "field rate: expected a value of at most 1000000, got 2000000.0."),
        ({"process": "poisson", "rate": float("nan")}, "field rate: expected a finite number, got nan."),
        ({"process": "gamma", "rate": 1}, "field cv: the process gamma needs cv."),
        ({"process": "gamma", "rate": 1, "cv": 0}, "field cv: expected a value of at least 0.01, got 0."),
        ({"process": "gamma", "rate": 1, "cv": 101}, "field cv: expected a value of at most 100, got 101."),
        (
            {"process": "poisson", "rate": 1, "cv": 2},
            "field cv: cv is a setting of the process gamma, not of poisson.",
        ),
        ({"process": "ramp", "rate": 1}, "field to_rate: the process ramp needs to_rate."),
        ({"process": "ramp", "rate": 1, "to_rate": -1}, "field to_rate: expected a value above 0, got -1."),
        (
            {"process": "gamma", "rate": 1, "cv": 2, "to_rate": 3},
            "field to_rate: to_rate is a setting of the process ramp, not of gamma.",
        ),
        ({"process": "poisson", "rate": "2"}, "field rate: expected a number, got '2'."),
    ],
)
def test_settings_without_sense_are_told(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Arrivals.model_validate(settings)
    assert first_problem(caught.value, settings, Arrivals).sentence("x.yaml") == f"x.yaml, {sentence}"


def test_arrivals_are_not_spread_over_centuries() -> None:
    records = [counted(f"r{number}") for number in range(3)]
    sentence = (
        r"arrivals \(process=constant, rate=1e-09\) spreads 3 starts over 3000000000 s; expected at most 1000000000"
    )
    with pytest.raises(ConfigurationError, match=sentence):
        arrived(records, Arrivals(process="constant", rate=1e-9))
