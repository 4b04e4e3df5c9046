"""From records to the plan that every arm is given."""

from __future__ import annotations

from typing import Any

import pytest
from jinja2 import TemplateError
from tests.traffic.records import SECOND, counted, session
from tests.traffic.word_tokenizer import WORDS, WordTokenizer

from quantgate.traces.record import Message, TraceRecord
from quantgate.traces.transform_record import TransformRecord
from quantgate.workload.build_plan import build_plan
from quantgate.workload.plan import ReplayPlan
from quantgate.workload.plan_shape import inspect_plan
from quantgate.workload.transforms import Clip, Limit, Speed, Transform
from quantgate_engine.errors import ConfigurationError


def plan(records: list[TraceRecord], **settings: Any) -> ReplayPlan:
    return build_plan(records, WordTokenizer(), source="x.jsonl", source_sha256="00", **settings)


def test_messages_go_through_the_chat_template_with_its_generation_prompt() -> None:
    chat = TraceRecord("a", 0, 5, messages=(Message("sys", "alpha"), Message("user", "beta")))
    (request,) = plan([chat]).requests
    assert WordTokenizer().decode(request.prompt_token_ids) == "<sys> alpha<user> beta<assistant>"


def test_a_raw_prompt_gets_the_special_tokens_of_the_tokenizer() -> None:
    (request,) = plan([TraceRecord("a", 0, 5, prompt_text=" alpha beta")]).requests
    assert WordTokenizer().decode(request.prompt_token_ids) == "<bos> alpha beta"


def test_counts_are_filled_with_plain_words_of_exactly_that_number() -> None:
    tokenizer = WordTokenizer()
    requests = plan([counted("a", prompt=50), counted("b", prompt=50)], seed=3).requests
    for request in requests:
        assert len(request.prompt_token_ids) == 50
        assert {tokenizer.decode([token]) for token in request.prompt_token_ids} <= set(WORDS)
        text = tokenizer.decode(request.prompt_token_ids)
        assert tuple(tokenizer.encode(text, add_special_tokens=False)) == request.prompt_token_ids
    assert requests[0].prompt_token_ids != requests[1].prompt_token_ids


def test_the_same_seed_makes_the_same_plan_and_another_one_does_not() -> None:
    records = [counted("a", prompt=50), counted("b", 1, prompt=50)]
    assert plan(records, seed=3).sha256() == plan(records, seed=3).sha256()
    assert plan(records, seed=3).sha256() != plan(records, seed=4).sha256()


def test_filler_does_not_depend_on_the_other_requests() -> None:
    alone = plan([counted("b", prompt=50)]).requests[0]
    together = plan([counted("a", prompt=50), counted("b", prompt=50)]).requests[1]
    assert alone.prompt_token_ids == together.prompt_token_ids


def test_everything_else_arrives_as_recorded() -> None:
    records = [
        counted("s.1", 0, session_id="s", slo_class="batch"),
        counted("s.2", 4, session_id="s", turn=2, slo_class="batch", think_time_ns=7, tags=("rag",),
                checker={"kind": "regex", "pattern": "x"}, disconnect_after_tokens=1,
                disconnect_after_ns=5, read_tokens_per_s=2.0),
    ]  # fmt: skip
    request = plan(records).requests[1]
    assert (request.scheduled_ns, request.output_tokens, request.slo_class) == (4 * SECOND, 2, "batch")
    assert (request.session_id, request.turn, request.think_time_ns) == ("s", 2, 7)
    assert (request.tags, request.checker) == (("rag",), {"kind": "regex", "pattern": "x"})
    assert request.disconnect_after_tokens == 1
    assert (request.disconnect_after_ns, request.read_tokens_per_s) == (5, 2.0)


def test_forced_lengths_ignore_the_end_of_sequence_and_natural_ones_do_not() -> None:
    assert plan([counted("a")]).requests[0].ignore_eos
    assert not plan([counted("a")], output_lengths="natural").requests[0].ignore_eos


def test_transforms_run_in_order_and_leave_a_record_each() -> None:
    records = [counted("a", 0, prompt=90), counted("b", 2), counted("c", 4)]
    transforms: list[Transform] = [Clip(max_prompt_tokens=50), Speed(factor=2), Limit(requests=1)]
    result = plan(records, transforms=transforms)
    assert [(r.request_id, r.scheduled_ns) for r in result.requests] == [("b", SECOND)]
    assert result.transforms == (
        TransformRecord("clip", {"max_prompt_tokens": 50, "max_output_tokens": None, "policy": "drop"}, 3, 2, 1),
        TransformRecord("speed", {"factor": 2.0}, 2, 2, 2),
        TransformRecord("limit", {"requests": 1}, 2, 1, 1),
    )


def test_a_transform_that_leaves_nothing_is_named() -> None:
    with pytest.raises(
        ConfigurationError, match=r"transform clip \(max_prompt_tokens=1, .*\) leaves none of 1 request"
    ):
        plan([counted("a")], transforms=[Clip(max_prompt_tokens=1)])


def test_requests_beyond_the_context_name_the_flags_that_help() -> None:
    records = [counted("fits", prompt=90, output=10), counted("long", prompt=95, output=6)]
    assert plan(records[:1], max_context_tokens=100).prompt_tokens == 90
    with pytest.raises(ConfigurationError) as caught:
        plan(records, max_context_tokens=100)
    message = str(caught.value)
    assert "1 of 2 requests do not fit the context of 100 tokens" in message
    assert "long, needs 95 prompt + 6 output tokens" in message
    for flag in ("--max-prompt-tokens", "--max-output-tokens", "--clip-policy"):
        assert flag in message


@pytest.mark.parametrize("error", [ValueError("no chat_template"), TemplateError("roles must alternate")])
def test_a_chat_template_that_refuses_is_named_as_the_reason(error: Exception) -> None:
    chat = TraceRecord("a", 0, 5, messages=(Message("user", "beta"),))
    with pytest.raises(ConfigurationError, match=rf"cannot put these chat messages into a prompt \({error}\)"):
        build_plan([chat], WordTokenizer(template_error=error), source="x", source_sha256="")


def test_no_records_make_no_plan() -> None:
    with pytest.raises(ConfigurationError, match=r"x\.jsonl holds no requests"):
        plan([])


def test_the_plan_has_the_shape_of_its_records() -> None:
    result = plan([*session("s", [0, 1]), counted("r", 2, prompt=10, output=20)], blocks=2)
    assert result.num_blocks == 2
    shape = inspect_plan(result)
    assert (shape.rows, shape.span_s, shape.rate_rps) == (3, 2.0, 1.0)
    assert shape.input_tokens is not None
    assert (shape.input_tokens.max, shape.output_tokens.max) == (10, 20)


def test_absurd_lengths_are_refused_before_a_prompt_of_that_length_is_made() -> None:
    with pytest.raises(ConfigurationError, match="needs 1000000000 prompt"):
        plan([counted("huge", prompt=1_000_000_000)], max_context_tokens=2048)
