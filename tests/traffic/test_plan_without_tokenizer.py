"""Plans for servers whose tokenizer nobody knows: texts stay texts, lengths are those that the log counted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.traffic.records import counted
from tests.traffic.word_tokenizer import WordTokenizer

from quantgate.traces.record import Message, TraceRecord
from quantgate.traces.transform_record import TransformRecord
from quantgate.workload.build_plan import build_plan
from quantgate.workload.plan import ReplayPlan
from quantgate.workload.plan_shape import inspect_plan
from quantgate.workload.transforms import Clip
from quantgate_engine.errors import ConfigurationError

HI = (Message("user", " alpha beta"),)


def plan(*records: TraceRecord, tokenizer: WordTokenizer | None = None, **settings: Any) -> ReplayPlan:
    return build_plan(records, tokenizer, source="x.jsonl", source_sha256="00", **settings)


def test_texts_stay_texts_and_counts_are_the_logs() -> None:
    first, second = plan(
        TraceRecord("a", 0, 5, messages=HI, prompt_token_count=9), TraceRecord("b", 1, 5, prompt_text="raw")
    ).requests
    assert (first.prompt_token_ids, first.messages, first.prompt_tokens) == ((), HI, 9)
    assert (second.prompt_token_ids, second.prompt_text, second.prompt_tokens) == ((), "raw", 0)


def test_the_plan_s_hash_tells_texts_apart() -> None:
    one = plan(TraceRecord("a", 0, 5, messages=HI)).sha256()
    assert one == plan(TraceRecord("a", 0, 5, messages=HI)).sha256()
    assert one != plan(TraceRecord("a", 0, 5, messages=(Message("user", "else"),))).sha256()


def test_a_tokenizer_counts_for_itself_whatever_the_log_counted() -> None:
    (request,) = plan(TraceRecord("a", 0, 5, messages=HI, prompt_token_count=99), tokenizer=WordTokenizer()).requests
    assert request.prompt_tokens == len(request.prompt_token_ids) == 4
    clipped = plan(
        TraceRecord("a", 0, 5, messages=HI, prompt_token_count=99),
        tokenizer=WordTokenizer(),
        transforms=[Clip(max_prompt_tokens=4)],
    )
    assert len(clipped.requests) == 1


def test_lengths_alone_need_a_tokenizer() -> None:
    with pytest.raises(ConfigurationError, match=r"tells lengths without texts.*--tokenizer NAME"):
        plan(counted("a"))


def test_dropping_goes_by_recorded_counts() -> None:
    kept = plan(
        TraceRecord("short", 0, 5, messages=HI, prompt_token_count=9),
        TraceRecord("long", 1, 5, messages=HI, prompt_token_count=11),
        transforms=[Clip(max_prompt_tokens=10)],
    )
    assert [request.request_id for request in kept.requests] == ["short"]


def test_what_nobody_counted_cannot_be_clipped() -> None:
    with pytest.raises(ConfigurationError, match=r"Request a: the length of its prompt is unknown.*--tokenizer NAME"):
        plan(TraceRecord("a", 0, 5, messages=HI), transforms=[Clip(max_prompt_tokens=10)])
    assert len(plan(TraceRecord("a", 0, 5, messages=HI), transforms=[Clip(max_output_tokens=10)]).requests) == 1


def test_a_text_cannot_be_cut_by_tokens_that_nobody_knows() -> None:
    record = TraceRecord("a", 0, 5, messages=HI, prompt_token_count=11)
    with pytest.raises(ConfigurationError, match="Request a: its prompt cannot be cut to 10 tokens without"):
        plan(record, transforms=[Clip(max_prompt_tokens=10, policy="cut")])


def test_cutting_with_a_tokenizer_forgets_the_recorded_count() -> None:
    record = TraceRecord("a", 0, 5, messages=HI, prompt_token_count=99)
    (request,) = plan(record, tokenizer=WordTokenizer(), transforms=[Clip(max_prompt_tokens=3, policy="cut")]).requests
    assert (len(request.prompt_token_ids), request.prompt_token_count, request.messages) == (3, None, None)


def test_the_context_is_checked_as_far_as_lengths_are_known() -> None:
    unknown, known = TraceRecord("u", 0, 5, messages=HI), TraceRecord("k", 1, 5, messages=HI, prompt_token_count=96)
    assert len(plan(unknown, max_context_tokens=100).requests) == 1
    with pytest.raises(ConfigurationError, match=r"1 of 2 requests do not fit the context of 100 tokens .*k, needs 96"):
        plan(unknown, known, max_context_tokens=100)


def test_natural_lengths_end_at_the_request_s_limit_or_the_context_s_end() -> None:
    def output_tokens(record: TraceRecord, **settings: Any) -> int:
        return plan(record, output_lengths="natural", **settings).requests[0].output_tokens

    record = TraceRecord("a", 0, 5, messages=HI, prompt_token_count=20, limit_tokens=500)
    assert plan(record).requests[0].output_tokens == 5
    assert output_tokens(record) == 500
    assert output_tokens(record, max_context_tokens=100) == 80
    assert output_tokens(record, transforms=[Clip(max_output_tokens=60)]) == 60
    assert output_tokens(TraceRecord("a", 0, 5, messages=HI)) == 5
    assert output_tokens(TraceRecord("a", 0, 50, messages=HI, limit_tokens=20)) == 50


def test_a_lower_limit_touches_the_row() -> None:
    record = TraceRecord("a", 0, 5, messages=HI, limit_tokens=500)
    (step,) = plan(record, transforms=[Clip(max_output_tokens=60)]).transforms
    assert (step.rows_out, step.rows_touched) == (1, 1)


def test_steps_of_the_import_stand_before_the_transforms() -> None:
    read = TransformRecord("read log", {"left_out": {"failed": 1}}, 2, 1, 1)
    steps = plan(
        TraceRecord("a", 0, 5, messages=HI), import_steps=[read], transforms=[Clip(max_output_tokens=60)]
    ).transforms
    assert steps[0] == read
    assert steps[1].name == "clip"


def test_a_plan_of_uncounted_prompts_has_no_input_lengths() -> None:
    counted_plan = plan(TraceRecord("a", 0, 5, messages=HI, prompt_token_count=9))
    shape = inspect_plan(counted_plan)
    assert shape.input_tokens is not None
    assert shape.input_tokens.max == 9
    assert inspect_plan(plan(TraceRecord("a", 0, 5, messages=HI))).input_tokens is None
