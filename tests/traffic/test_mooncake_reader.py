"""Mooncake's JSONL: lengths and blocks, the size of blocks checked on every row, and exact errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.lengths_files import block_row, imported, refusal, write_lines
from tests.traffic.records import SECOND, patiently

from quantgate.traces.prompt_blocks import PromptBlocks, blocks_of, misfit
from quantgate.traces.record import TraceRecord
from quantgate.traces.transform_record import TransformRecord

GOOD = block_row(500, 700, 9, [0, 5])


def test_rows_become_records_with_their_blocks(tmp_path: Path) -> None:
    trace = imported(
        write_lines(tmp_path / "m.jsonl", GOOD, block_row(500, 512, 1, [0]), block_row(3500.25, 513, 2, [7, 0]))
    )
    assert trace.records == [
        TraceRecord("mooncake-000001", 0, 9, prompt_token_count=700, prompt_blocks=PromptBlocks((0, 5), 512)),
        TraceRecord("mooncake-000002", 0, 1, prompt_token_count=512, prompt_blocks=PromptBlocks((0,), 512)),
        TraceRecord(
            "mooncake-000003",
            3 * SECOND + 250_000,
            2,
            prompt_token_count=513,
            prompt_blocks=PromptBlocks((7, 0), 512),
        ),
    ]
    assert trace.steps == (TransformRecord("read trace", {"left_out": {}}, 3, 3, 0),)


def test_rows_without_prompt_or_answer_are_left_out_and_counted(tmp_path: Path) -> None:
    trace = write_lines(tmp_path / "m.jsonl", block_row(0, 700, 0, [0, 5]), block_row(9, 0, 5, []), GOOD)
    (step,) = imported(trace).steps
    assert (step.rows_in, step.rows_out, step.rows_touched) == (3, 1, 2)
    assert step.parameters == {"left_out": {"empty_answer": 1, "without_prompt": 1}}
    assert [(record.request_id, record.scheduled_ns) for record in imported(trace).records] == [("mooncake-000003", 0)]
    assert refusal(trace, strict=True).startswith(
        "m.jsonl, line 1, field output_length: expected an answer of at least one token, got 0; mend or remove the row"
    )


def test_another_block_size_is_refused_with_the_one_that_fits_and_taken_when_it_is_said(tmp_path: Path) -> None:
    trace = write_lines(tmp_path / "m.jsonl", block_row(0, 6758, 5, list(range(423))))
    assert refusal(trace) == (
        "m.jsonl, line 1, field hash_ids: expected 14 ids for 6,758 prompt tokens in blocks of 512, got 423, which "
        "fits blocks of 16; mend the row, or say the trace's block size with --block-tokens (block_tokens in a suite)."
    )
    (record,) = imported(trace, block_tokens=16).records
    assert record.prompt_blocks == PromptBlocks(tuple(range(423)), 16)


def test_the_size_of_blocks_is_checked_on_every_row(tmp_path: Path) -> None:
    trace = write_lines(tmp_path / "m.jsonl", GOOD, block_row(501, 512, 5, [0, 1]))
    assert refusal(trace).startswith("m.jsonl, line 2, field hash_ids: expected 1 id for 512 prompt tokens in")


@pytest.mark.parametrize(
    ("blocks", "tokens", "told"),
    [
        (1, 700, "2 ids for 700 prompt tokens in blocks of 512, got 1, which fits blocks of 700 tokens or more"),
        (3, 700, "got 3, which fits blocks of 256"),
        (5, 700, "got 5, which fits blocks of 140 to 174"),
        (701, 700, "got 701, which fits no size of blocks"),
        (0, 700, "got 0, which fits no size of blocks"),
        (1, 0, "expected 0 ids for 0 prompt tokens in blocks of 512, got 1, which fits no size of blocks"),
    ],
)
def test_what_would_fit_is_told(blocks: int, tokens: int, told: str) -> None:
    assert (misfit(blocks, tokens, 512) or "").endswith(told)


@patiently
@given(st.integers(1, 5000), st.integers(1, 600))
def test_blocks_of_the_real_size_always_fit_and_one_more_or_less_never_does(tokens: int, size: int) -> None:
    blocks = blocks_of(tokens, size)
    assert (blocks - 1) * size < tokens <= blocks * size
    assert misfit(blocks, tokens, size) is None
    assert misfit(blocks + 1, tokens, size) is not None
    assert misfit(blocks - 1, tokens, size) is not None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"timestamp": -1}, "field timestamp: expected a number of milliseconds from 0, got -1."),
        ({"timestamp": "0"}, "field timestamp: expected a number of milliseconds from 0, got '0'."),
        ({"timestamp": 1e300}, "field timestamp: expected a number of milliseconds from 0, got 1e+300."),
        ({"input_length": 7.5}, "field input_length: expected an integer from 0 to 1e9 (prompt tokens), got 7.5."),
        ({"input_length": 10**10}, "field input_length: expected an integer from 0 to 1e9 (prompt tokens), got 100"),
        ({"output_length": -2}, "field output_length: expected an integer from 0 to 1e9 (tokens of the answer), got -"),
        ({"hash_ids": 3}, "field hash_ids: expected a list of integers from 0 (ids of the prompt's blocks), got 3."),
        ({"hash_ids": [0, "b"]}, "field hash_ids.1: expected a list of integers from 0 (ids of the prompt's blocks)"),
        ({"hash_ids": [0, -1]}, "field hash_ids.1: expected a list of integers from 0 (ids of the prompt's blocks)"),
        ({"chat_id": 3}, "field chat_id: expected only known fields; this one is not; remove it or check its"),
    ],
)
def test_a_wrong_field_is_named_with_line_and_expectation(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    trace = write_lines(tmp_path / "m.jsonl", GOOD, "", block_row(501, 700, 9, [0, 5], **changes))
    assert refusal(trace).startswith(f"m.jsonl, line 3, {sentence}")


def test_missing_and_repeated_fields_and_other_texts_are_named(tmp_path: Path) -> None:
    row = json.loads(GOOD)
    del row["output_length"]
    assert refusal(write_lines(tmp_path / "m.jsonl", json.dumps(row))) == (
        "m.jsonl, line 1, field output_length: expected an integer from 0 to 1e9 (tokens of the answer), got nothing; "
        "add the field."
    )
    twice = GOOD.replace('"input_length"', '"input_length": 7, "input_length"')
    assert refusal(write_lines(tmp_path / "m.jsonl", twice)) == (
        "m.jsonl, line 1, field input_length: this key stands twice in one object; keep one of them."
    )
    assert refusal(write_lines(tmp_path / "m.jsonl", GOOD, "nope")).startswith(
        "m.jsonl, line 2: expected one JSON object, got text that is not JSON ("
    )


def test_decreasing_times_are_refused(tmp_path: Path) -> None:
    assert refusal(write_lines(tmp_path / "m.jsonl", GOOD, block_row(499, 700, 9, [0, 5]))) == (
        "m.jsonl, line 2: expected a time not before the previous row's; it lies 0.001000 s before it; sort the rows "
        "by time."
    )


def test_a_block_size_is_refused_where_the_format_has_none(tmp_path: Path) -> None:
    trace = write_lines(tmp_path / "t.jsonl", '{"id": "a", "offset": 0, "prompt_tokens": 3, "max_tokens": 3}')
    assert refusal(trace, block_tokens=16) == (
        "t.jsonl: a block size was given (block_tokens, --block-tokens), but the format quantgate-jsonl has no blocks, "
        "or tells their size itself; leave it out."
    )
