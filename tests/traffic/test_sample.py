"""Stratified samples: quotas by hand and by property, sessions whole, the seed, and the counts that are recorded."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import counted, patiently, session, workloads
from tests.traffic.word_tokenizer import WordTokenizer

from quantgate.traces.record import Message, TraceRecord
from quantgate.workload.build_plan import build_plan
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.transforms import Sample, TransformContext
from quantgate.workload.transforms.allocation import allocate

CONTEXT = TransformContext(PromptEncoder(WordTokenizer(), 0), 0)


def traffic() -> list[TraceRecord]:
    """80 short chats, 16 long documents, 4 batch jobs: one request a second."""
    made = [counted(f"chat{i}", tags=("chat",)) for i in range(80)]
    made += [counted(f"rag{i}", prompt=3000, tags=("rag",)) for i in range(16)]
    made += [counted(f"job{i}", slo_class="batch") for i in range(4)]
    ordered = sorted(made, key=lambda record: hash_free_order(record.request_id))
    return [counted_at(record, index) for index, record in enumerate(ordered)]


def hash_free_order(request_id: str) -> str:
    return request_id[::-1]


def counted_at(record: TraceRecord, second: int) -> TraceRecord:
    return counted(
        record.request_id, second, record.prompt_token_count or 0, tags=record.tags, slo_class=record.slo_class
    )


def kept(records: list[TraceRecord], **settings: Any) -> dict[str, int]:
    result = Sample(**settings).apply(records, CONTEXT)
    return {name: stratum["kept"] for name, stratum in result.details["strata"].items()}


def test_a_proportional_sample_keeps_the_shares() -> None:
    assert kept(traffic(), requests=50) == {
        "batch | 0 to 512 tokens | no tag": 2,
        "interactive | 0 to 512 tokens | chat": 40,
        "interactive | 2049 to 8192 tokens | rag": 8,
    }


def test_an_equal_sample_takes_as_many_of_each_as_there_are() -> None:
    assert kept(traffic(), requests=30, allocation="equal") == {
        "batch | 0 to 512 tokens | no tag": 4,
        "interactive | 0 to 512 tokens | chat": 13,
        "interactive | 2049 to 8192 tokens | rag": 13,
    }


def test_strata_can_be_fewer_and_edges_one_s_own() -> None:
    assert kept(traffic(), requests=50, by=["class"]) == {"batch": 2, "interactive": 48}
    assert kept(traffic(), requests=50, by=["length"], length_edges=[4000]) == {"0 to 4000 tokens": 50}
    assert kept(traffic(), requests=10, by=[]) == {"all": 10}


def test_the_seed_decides_and_order_of_time_stays() -> None:
    def ids(seed: int) -> list[str]:
        result = Sample(requests=20).apply(traffic(), TransformContext(PromptEncoder(None), seed))
        assert [record.scheduled_ns for record in result.records] == sorted(r.scheduled_ns for r in result.records)
        return [record.request_id for record in result.records]

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)
    assert len(ids(1)) == 20


def test_more_than_there_is_keeps_everything() -> None:
    result = Sample(requests=500).apply(traffic(), CONTEXT)
    assert (result.records, result.rows_touched) == (traffic(), 0)


def test_a_sample_can_keep_the_rate_of_the_log() -> None:
    records = [counted(f"r{i}", i) for i in range(100)]
    result = Sample(requests=25, keep_rate=True).apply(records, CONTEXT)
    plain = Sample(requests=25).apply(records, CONTEXT)
    assert [record.scheduled_ns for record in result.records] == [
        round(record.scheduled_ns / 4) for record in plain.records
    ]
    assert result.details["times_divided_by"] == 4


def test_a_session_that_does_not_fit_is_passed_over_for_one_that_does() -> None:
    records = [*session("long", [0, 1, 2, 3, 4]), *session("short", [5, 6]), counted("single", 7)]
    result = Sample(requests=3, by=()).apply(records, CONTEXT)
    assert sorted(record.request_id for record in result.records) == ["short.1", "short.2", "single"]


def test_texts_are_told_apart_by_their_characters() -> None:
    def chat(request_id: str, length: int) -> TraceRecord:
        return TraceRecord(request_id, 0, 1, messages=(Message("user", "x" * length),))

    records = [chat("short", 2048), chat("long", 2049)]
    assert kept(records, requests=2, by=["length"]) == {"0 to 512 tokens": 1, "513 to 2048 tokens": 1}


def test_the_plan_records_what_each_stratum_kept() -> None:
    plan = build_plan(
        traffic(), WordTokenizer(), source="x", source_sha256="", transforms=[Sample(requests=10, by=("class",))]
    )
    (step,) = plan.transforms
    assert (step.name, step.rows_in, step.rows_out, step.rows_touched) == ("sample", 100, 10, 90)
    assert step.parameters["strata"] == {"batch": {"of": 4, "kept": 1}, "interactive": {"of": 96, "kept": 9}}
    assert step.parameters["requests"] == 10


@pytest.mark.parametrize(
    ("sizes", "total", "how", "quotas"),
    [
        ({"a": 50, "b": 30, "c": 20}, 10, "proportional", {"a": 5, "b": 3, "c": 2}),
        ({"a": 98, "b": 1, "c": 1}, 10, "proportional", {"a": 8, "b": 1, "c": 1}),
        ({"a": 10, "b": 10, "c": 10}, 10, "proportional", {"a": 4, "b": 3, "c": 3}),
        ({"a": 100, "b": 2}, 10, "equal", {"a": 8, "b": 2}),
        ({"a": 5, "b": 5}, 1, "equal", {"a": 1, "b": 0}),
        ({"a": 5, "b": 5}, 10, "equal", {"a": 5, "b": 5}),
    ],
)
def test_quotas_by_hand(
    sizes: dict[str, int], total: int, how: Literal["proportional", "equal"], quotas: dict[str, int]
) -> None:
    assert allocate(sizes, total, how) == quotas


@given(
    st.dictionaries(st.text(max_size=3), st.integers(1, 500), min_size=1, max_size=12),
    st.floats(0, 1),
    st.sampled_from(["proportional", "equal"]),
)
def test_quotas_add_up_and_never_exceed_a_stratum(
    sizes: dict[str, int], share: float, how: Literal["proportional", "equal"]
) -> None:
    total = round(share * sum(sizes.values()))
    quotas = allocate(sizes, total, how)
    assert sum(quotas.values()) == total
    assert all(0 <= quotas[name] <= sizes[name] for name in sizes)
    assert total < len(sizes) or all(quotas.values())


@patiently
@given(workloads(), st.integers(1, 60), st.integers(0, 3))
def test_a_sample_is_never_larger_than_asked_and_takes_sessions_whole(
    records: list[TraceRecord], requests: int, seed: int
) -> None:
    result = Sample(requests=requests, length_edges=(20, 40)).apply(
        records, TransformContext(PromptEncoder(None), seed)
    )
    assert len(result.records) <= requests
    whole = {
        record.session_id: sum(other.session_id == record.session_id for other in records) for record in result.records
    }
    for session_id, turns in whole.items():
        if session_id is not None:
            assert sum(record.session_id == session_id for record in result.records) == turns
    singles = sum(record.session_id is None for record in records)
    if singles == len(records):
        assert len(result.records) == min(requests, len(records))
