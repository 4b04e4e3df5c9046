"""The quick suite's traffic: what it must carry, and that nobody changes it unseen.

Every bar on the suite's time counts on exactly this file: a change of the hash below starts a new series of timings.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from quantgate.traces.reader import read_trace
from quantgate.traces.record import TraceRecord
from quantgate.traces.traffic_shape import describe
from quantgate.workload.build_plan import build_plan
from quantgate.workload.plan import ReplayPlan
from quantgate.workload.plan_shape import inspect_plan
from quantgate.workload.sample_drawing.arrivals import RATE_BY_STRETCH
from quantgate.workload.sample_drawing.draw import SEED, draw_quick
from quantgate.workload.sample_drawing.texts import read_texts
from quantgate_engine.model.catalog import resolve_model

SAMPLES = Path(__file__).parents[2] / "replay_samples"
QUICK = SAMPLES / "quick.jsonl"
QUICK_SHA256 = "1a87af72121ccffbf8b8de9fa7ed7688ccbbd381f4483920a6f83891c0b82609"


@pytest.fixture(scope="module")
def records() -> list[TraceRecord]:
    return read_trace(QUICK)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in QUICK.read_text(encoding="utf-8").splitlines()]


def test_the_file_is_the_one_that_all_timings_refer_to() -> None:
    assert hashlib.sha256(QUICK.read_bytes()).hexdigest() == QUICK_SHA256


def test_the_script_draws_the_file_byte_for_byte() -> None:
    assert draw_quick(SAMPLES / "texts").encode() == QUICK.read_bytes()
    assert draw_quick(SAMPLES / "texts", SEED + 1).encode() != QUICK.read_bytes()


def test_kinds_and_classes_have_their_shares(records: list[TraceRecord]) -> None:
    assert 400 <= len(records) <= 420
    kinds = Counter(record.tags[0] for record in records)
    for kind, share in {"chat": 0.45, "rag": 0.25, "code": 0.15, "tools": 0.15}.items():
        assert kinds[kind] / len(records) == pytest.approx(share, abs=0.01)
    classes = Counter(record.slo_class for record in records)
    assert classes["interactive"] / len(records) == pytest.approx(0.75, abs=0.02)
    assert set(classes) == {"interactive", "batch"}


def test_arrivals_are_bursty_and_their_rate_changes(records: list[TraceRecord]) -> None:
    shape = describe(records)
    assert 40 <= shape.span_s <= 44
    assert shape.rate_rps is not None
    assert shape.iat_cv is not None
    assert 9 <= shape.rate_rps <= 11
    assert shape.iat_cv > 1.1
    assert max(RATE_BY_STRETCH) / min(RATE_BY_STRETCH) == pytest.approx(2.9, abs=0.01)
    first_stretches = sum(record.scheduled_ns < 10.5e9 for record in records)
    middle_stretches = sum(17.5e9 <= record.scheduled_ns < 28e9 for record in records)
    assert middle_stretches > 1.5 * first_stretches


def test_sessions_have_two_or_three_turns_with_the_recorded_history(records: list[TraceRecord]) -> None:
    turns = Counter(record.session_id for record in records if record.session_id is not None)
    assert Counter(turns.values()) == {2: 55, 3: 11}
    for record in records:
        assert record.messages is not None
        answers = sum(message.role == "assistant" for message in record.messages)
        assert answers == record.turn - 1
        assert (record.think_time_ns > 0) == (record.turn > 1)


def test_prompts_are_varied(records: list[TraceRecord]) -> None:
    assert len({record.messages for record in records}) == len(records)
    openers = {record.messages for record in records if record.tags == ("chat",) and record.turn == 1}
    assert len(openers) >= 120
    functions = {record.checker["defines"] for record in records if record.tags == ("code",) and record.checker}
    assert len(functions) >= 60
    wishes = {record.messages[1].content for record in records if record.tags == ("tools",) and record.messages}
    assert len(wishes) >= 40
    citations = {record.checker["texts"][1] for record in records if record.tags == ("rag",) and record.checker}
    assert len(citations) >= 60


def test_every_question_on_documents_shows_the_document_that_answers_it(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["tags"] == ["rag"]:
            answer, citation = row["checker"]["texts"]
            shown = row["messages"][1]["content"]
            assert answer.lower() in shown.lower(), row["id"]
            assert citation in shown, row["id"]


def test_code_tools_and_documents_carry_a_checker_and_chat_does_not(records: list[TraceRecord]) -> None:
    for record in records:
        assert (record.checker is None) == (record.tags == ("chat",)), record.request_id


def test_the_authored_texts_hold_together() -> None:
    texts = read_texts(SAMPLES / "texts")
    for passage in texts.passages:
        for question in passage.questions:
            assert question.answer.lower() in passage.text.lower(), question
    for task in texts.code:
        assert task.function in f"{task.ask} {task.given}", task.function
        ast.parse(task.given or "")
    for situation in texts.tools.situations:
        signatures = {line.split("(")[0]: line for line in texts.tools.sets[situation.set]}
        if situation.tool is not None:
            assert all(name in signatures[situation.tool] for name in situation.arguments), situation
        if situation.result is not None:
            json.loads(situation.result)
            assert situation.then
            assert situation.answer
    for dialogue in texts.chats.dialogues:
        assert len(dialogue) in {3, 5}


@pytest.fixture(scope="module")
def plan(records: list[TraceRecord]) -> ReplayPlan:
    tokenizer = AutoTokenizer.from_pretrained(resolve_model("smollm2-135m-instruct").path)
    return build_plan(
        records, tokenizer, source=QUICK.name, source_sha256=QUICK_SHA256, blocks=4, max_context_tokens=1024
    )


@pytest.mark.model
def test_the_plan_carries_the_tokens_that_the_bars_ask_for(plan: ReplayPlan) -> None:
    assert 40_200 <= plan.prompt_tokens <= 42_500
    assert 8_050 <= plan.output_tokens <= 8_600
    assert max(len(request.prompt_token_ids) for request in plan.requests) <= 520
    assert min(request.output_tokens for request in plan.requests) >= 2


@pytest.mark.model
def test_the_plan_has_no_two_equal_prompts_and_four_equal_blocks(plan: ReplayPlan) -> None:
    assert len({request.prompt_token_ids for request in plan.requests}) == len(plan.requests)
    sizes = Counter(request.block_index for request in plan.requests)
    assert set(sizes) == {0, 1, 2, 3}
    assert max(sizes.values()) - min(sizes.values()) <= 3


@pytest.mark.model
def test_lengths_have_the_long_tails_of_real_traffic(plan: ReplayPlan) -> None:
    shape = inspect_plan(plan)
    assert shape.input_tokens is not None
    # The published conversations have p95/p50 of 4.0 (input) and 3.5 (output).
    assert 2.5 <= shape.input_tokens.p95 / shape.input_tokens.p50 <= 4.5
    assert 2.8 <= shape.output_tokens.p95 / shape.output_tokens.p50 <= 4.0


@pytest.mark.model
def test_the_plan_is_the_same_as_ever(plan: ReplayPlan) -> None:
    assert plan.sha256() == "fb4c5668cde44a9dd61b862a7a6b8deeb642dc4550fdafd923c4112bd09dc6c2"
