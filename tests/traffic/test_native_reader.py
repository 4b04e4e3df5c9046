"""Our own JSONL format: what is read, and what is said about rows that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from quantgate.traces.native_row import native_json_schema
from quantgate.traces.prompt_blocks import PromptBlocks
from quantgate.traces.reader import read_trace
from quantgate.traces.record import Message, TraceRecord
from quantgate_engine.errors import ConfigurationError

GOOD = {"id": "a", "offset": 0, "prompt": "hi", "max_tokens": 3}


def write(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_every_field_arrives_in_the_record(tmp_path: Path) -> None:
    row = {
        "id": "q1", "offset": 1.000000001, "max_tokens": 7, "class": "batch", "session": "s", "turn": 1,
        "tags": ["rag"], "disconnect_after": 2, "disconnect_after_s": 2.5,
        "read_tokens_per_s": 8, "checker": {"kind": "contains", "texts": ["six"], "match": "any"},
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "How many?"}],
    }  # fmt: skip
    second = {"id": "q2", "offset": 2.5, "max_tokens": 1, "class": "batch", "session": "s", "turn": 2,
              "think_time": 0.25, "prompt_tokens": 9}  # fmt: skip
    assert read_trace(write(tmp_path / "t.jsonl", row, second)) == [
        TraceRecord(
            request_id="q1", scheduled_ns=1_000_000_001, max_tokens=7, slo_class="batch", session_id="s", turn=1,
            messages=(Message("system", "Be short."), Message("user", "How many?")), tags=("rag",),
            checker={"kind": "contains", "texts": ("six",), "match": "any"}, disconnect_after_tokens=2,
            disconnect_after_ns=2_500_000_000, read_tokens_per_s=8,
        ),
        TraceRecord(
            request_id="q2", scheduled_ns=2_500_000_000, max_tokens=1, slo_class="batch", session_id="s", turn=2,
            think_time_ns=250_000_000, prompt_token_count=9,
        ),
    ]  # fmt: skip


BAD_ROWS = [
    (
        {"read_tokens_per_s": 0},
        "field read_tokens_per_s: expected a number above 0, up to 1e9 (tokens that the client reads per second), "
        "got 0.",
    ),
    (
        {"disconnect_after_s": -1},
        "field disconnect_after_s: expected a number above 0, up to 1e9 (seconds after sending in which the client "
        "leaves), got -1.",
    ),
    (
        {"max_tokens": "ten"},
        "field max_tokens: expected an integer of at least 1 (output tokens, at most 1e9), got 'ten'.",
    ),
    ({"max_tokens": 0}, "field max_tokens: expected an integer of at least 1 (output tokens, at most 1e9), got 0."),
    (
        {"max_tokens": 2.5},
        "field max_tokens: expected an integer of at least 1 (output tokens, at most 1e9), got 2.5.",
    ),
    (
        {"max_tokens": True},
        "field max_tokens: expected an integer of at least 1 (output tokens, at most 1e9), got true.",
    ),
    (
        {"max_tokens": None},
        "field max_tokens: expected an integer of at least 1 (output tokens, at most 1e9), got null.",
    ),
    ({"offset": -1}, "field offset: expected a number from 0 to 1e9 (seconds from the start), got -1."),
    ({"offset": 1e300}, "field offset: expected a number from 0 to 1e9 (seconds from the start), got 1e+300."),
    ({"offset": "0"}, "field offset: expected a number from 0 to 1e9 (seconds from the start), got '0'."),
    ({"id": ""}, "field id: expected a text of at least one character (unique in the file), got ''."),
    ({"id": "a"}, "field id: expected an id that no other row has, got 'a', which line 1 has already."),
    ({"clas": "x"}, "field clas: expected only known fields; this one is not; remove it or check its spelling."),
    ({"tags": "chat"}, "field tags: expected a list of texts (such as chat, rag, code, tools), got 'chat'."),
    (
        {"prompt": None},
        "expected exactly one of messages, prompt, prompt_tokens and prompt_token_ids, got none of them.",
    ),
    (
        {"prompt_tokens": 3},
        "expected exactly one of messages, prompt, prompt_tokens and prompt_token_ids, got prompt and prompt_tokens.",
    ),
    (
        {"prompt_token_ids": [3]},
        "expected exactly one of messages, prompt, prompt_tokens and prompt_token_ids, got prompt and "
        "prompt_token_ids.",
    ),
    (
        {"prompt": None, "prompt_tokens": 3, "recorded_prompt_tokens": 3},
        "expected recorded_prompt_tokens only beside a prompt, got it beside prompt_tokens.",
    ),
    (
        {"prompt": None, "messages": []},
        "field messages: expected a list of at least one message (the chat so far), got [].",
    ),
    (
        {"prompt": None, "messages": [{"role": "boss", "content": "x"}]},
        "field messages.0.role: expected one of 'system', 'user', 'assistant', 'tool', got 'boss'.",
    ),
    (
        {"prompt": None, "messages": [{"role": "user"}]},
        "field messages.0.content: expected a text (what was said), got nothing; add the field.",
    ),
    (
        {"prompt_blocks": [0], "block_tokens": 16},
        "expected prompt_tokens, prompt_blocks and block_tokens together, got prompt_blocks and block_tokens.",
    ),
    (
        {"prompt": None, "prompt_tokens": 20, "prompt_blocks": [0, 1]},
        "expected prompt_tokens, prompt_blocks and block_tokens together, got prompt_tokens and prompt_blocks.",
    ),
    (
        {"prompt": None, "prompt_tokens": 20, "block_tokens": 16},
        "expected prompt_tokens, prompt_blocks and block_tokens together, got prompt_tokens and block_tokens.",
    ),
    (
        {"prompt": None, "prompt_tokens": 700, "prompt_blocks": [0, 1, 2], "block_tokens": 512},
        "field prompt_blocks: expected 2 ids for 700 prompt tokens in blocks of 512, got 3, which fits blocks of 256.",
    ),
    (
        {"prompt": None, "prompt_tokens": 20, "prompt_blocks": [0, 1.5], "block_tokens": 16},
        "field prompt_blocks.1: expected a list of integers from 0 (ids of the prompt's blocks; equal ids are equal "
        "tokens), got 1.5.",
    ),
    (
        {"prompt": None, "prompt_tokens": 20, "prompt_blocks": [0], "block_tokens": 0},
        "field block_tokens: expected an integer of at least 1 (tokens of each block but the last), got 0.",
    ),
    ({"turn": 2}, "expected a session for a turn above 1, got none."),
    ({"think_time": 1}, "expected think_time only on turns above 1, got it on turn 1."),
    ({"session": "s", "turn": 2}, "field turn: expected 1, the next turn of session 's', got 2."),
    (
        {"checker": {"kind": "magic"}},
        "field checker: expected an object whose kind is 'contains', 'regex', 'tool_call' or 'python_syntax', "
        'got {"kind": "magic"}.',
    ),
    (
        {"checker": {"kind": "regex", "pattern": "("}},
        "field checker.pattern: expected a valid regular expression, got '('.",
    ),
    (
        {"checker": {"kind": "contains", "texts": []}},
        "field checker.texts: expected a list of at least one text, got [].",
    ),
    (
        {"checker": {"kind": "python_syntax", "defines": "a b"}},
        "field checker.defines: expected the name of a Python function, got 'a b'.",
    ),
]


@pytest.mark.parametrize(("changes", "sentence"), BAD_ROWS)
def test_a_wrong_field_is_named_with_line_and_expectation(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    trace = write(tmp_path / "x.jsonl", GOOD, "", GOOD | {"id": "b"} | changes)
    with pytest.raises(ConfigurationError) as caught:
        read_trace(trace)
    separator = ", " if sentence.startswith("field") else ": "
    assert str(caught.value) == f"{trace}, line 3{separator}{sentence}"


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"/x\.jsonl, line 1, field max_tokens: .* got nothing; add the field"):
        read_trace(write(tmp_path / "x.jsonl", {"id": "a", "offset": 0, "prompt": "hi"}))


@pytest.mark.parametrize("text", ["nope", '{"id": "b", "offset": 1', "[1]", '"b"'])
def test_a_line_that_is_no_json_object_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"/x\.jsonl, line 2: expected one JSON object"):
        read_trace(write(tmp_path / "x.jsonl", GOOD, text))


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="field offset: expected a number from 0 to 1e9"):
        read_trace(write(tmp_path / "x.jsonl", '{"id": "a", "offset": NaN, "prompt": "hi", "max_tokens": 1}'))


def test_long_values_are_shortened_in_messages(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_trace(write(tmp_path / "x.jsonl", GOOD | {"max_tokens": "secret " * 100}))
    assert len(str(caught.value).removeprefix(str(tmp_path))) < 200


def test_a_key_that_stands_twice_is_named(tmp_path: Path) -> None:
    row = '{"id": "b", "offset": 1, "prompt": "hi", "max_tokens": 1, "max_tokens": 900}'
    trace = write(tmp_path / "x.jsonl", GOOD, row)
    with pytest.raises(ConfigurationError) as caught:
        read_trace(trace)
    assert (
        str(caught.value)
        == f"{trace}, line 2, field max_tokens: this key stands twice in one object; keep one of them."
    )


def test_the_published_schema_says_the_same_as_the_reader() -> None:
    validator = jsonschema.Draft202012Validator(native_json_schema())
    validator.check_schema(native_json_schema())
    assert validator.is_valid(GOOD | {"class": "batch", "checker": {"kind": "tool_call", "tool": None}})
    for changes in ({"max_tokens": "ten"}, {"max_tokens": 0}, {"offset": -1}, {"clas": "x"}, {"tags": "chat"}):
        assert not validator.is_valid(GOOD | changes), changes


BLOCKS = {"id": "a", "offset": 0, "max_tokens": 3, "prompt_tokens": 700, "prompt_blocks": [4, 9], "block_tokens": 512}


def test_blocks_arrive_in_the_record_and_are_told_by_the_schema(tmp_path: Path) -> None:
    (record,) = read_trace(write(tmp_path / "t.jsonl", BLOCKS))
    assert record == TraceRecord("a", 0, 3, prompt_token_count=700, prompt_blocks=PromptBlocks((4, 9), 512))
    validator = jsonschema.Draft202012Validator(native_json_schema())
    assert validator.is_valid(BLOCKS)
    assert validator.is_valid(GOOD | {"prompt_blocks": None, "block_tokens": None})
    for missing in ("prompt_tokens", "prompt_blocks", "block_tokens"):
        row = {name: value for name, value in BLOCKS.items() if name != missing}
        assert not validator.is_valid(row), missing
        assert not validator.is_valid(BLOCKS | {missing: None}), missing
    assert not validator.is_valid(BLOCKS | {"prompt": "hi"})


def test_all_blocks_of_a_file_have_one_size(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.jsonl", BLOCKS, BLOCKS | {"id": "b", "prompt_tokens": 500, "block_tokens": 256})
    with pytest.raises(ConfigurationError) as caught:
        read_trace(trace)
    assert str(caught.value) == f"{trace}, line 2, field block_tokens: expected 512, as in the rows above, got 256."
