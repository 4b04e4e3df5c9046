"""Our own format, written: what is read back is what there was."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import SECOND, counted, patiently, session

from quantgate.published_schemas import published_schemas
from quantgate.traces.native_row import NativeRow
from quantgate.traces.native_writer import native_line, write_native
from quantgate.traces.prompt_blocks import PromptBlocks, blocks_of
from quantgate.traces.reader import read_trace
from quantgate.traces.record import Message, TraceRecord
from quantgate.traces.source_text import LONGEST_ROW_BYTES
from quantgate_engine.errors import ConfigurationError

# A float tells seconds to the nanosecond below 2 ** 23 of them.
EXACT_NS = 2**23 * SECOND - 1

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
counts = st.integers(1, 1_000_000_000)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
checkers: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(
        lambda texts, match: {"kind": "contains", "texts": tuple(texts), "match": match},
        st.lists(texts, min_size=1, max_size=3),
        st.sampled_from(["all", "any"]),
    ),
    st.just({"kind": "regex", "pattern": "a+|\\d"}),
    st.builds(
        lambda tool, arguments: {"kind": "tool_call", "tool": tool, "arguments": arguments},
        st.none() | texts,
        st.dictionaries(texts, json_values, max_size=3),
    ),
    st.just({"kind": "python_syntax", "defines": "f_1"}),
)


@st.composite
def prompts(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["messages", "text", "ids", "count", "blocks"]))
    beside = {"prompt_token_count": draw(st.none() | st.integers(0, 1_000_000_000))}
    if kind == "messages":
        roles = st.sampled_from(["system", "user", "assistant", "tool"])
        said = draw(st.lists(st.builds(Message, roles, texts), min_size=1, max_size=3))
        return {"messages": tuple(said), **beside}
    if kind == "text":
        return {"prompt_text": draw(names), **beside}
    if kind == "ids":
        return {"prompt_token_ids": tuple(draw(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5))), **beside}
    if kind == "count":
        return {"prompt_token_count": draw(counts)}
    tokens, size = draw(st.integers(1, 60)), draw(st.integers(1, 20))
    needed = blocks_of(tokens, size)
    ids = draw(st.lists(st.integers(0, 2**63 - 1), min_size=needed, max_size=needed))
    return {"prompt_token_count": tokens, "prompt_blocks": PromptBlocks(tuple(ids), size)}


@st.composite
def records(draw: st.DrawFn) -> TraceRecord:
    turn = draw(st.integers(1, 5))
    return TraceRecord(
        request_id=draw(names),
        scheduled_ns=draw(st.integers(0, EXACT_NS)),
        max_tokens=draw(counts),
        slo_class=draw(names),
        session_id=draw(names if turn > 1 else st.none() | names),
        turn=turn,
        think_time_ns=draw(st.integers(0, EXACT_NS)) if turn > 1 else 0,
        tags=tuple(draw(st.lists(texts, max_size=3))),
        checker=draw(st.none() | checkers),
        disconnect_after_tokens=draw(st.none() | counts),
        disconnect_after_ns=draw(st.none() | st.integers(1_000_000, EXACT_NS)),
        read_tokens_per_s=draw(st.none() | st.floats(0.001, 1e6)),
        limit_tokens=draw(st.none() | counts),
        **draw(prompts()),
    )


VALIDATOR = jsonschema.Draft202012Validator(published_schemas()["trace.schema.json"])


@patiently
@given(records())
def test_a_record_reads_back_as_itself_from_a_row_of_the_published_schema(record: TraceRecord) -> None:
    line = native_line(record)
    assert "\n" not in line
    VALIDATOR.validate(json.loads(line))
    assert NativeRow.model_validate_json(line).to_record() == record


def test_no_field_of_a_record_stands_aside() -> None:
    """The strategy above draws each of them: a new field has to be drawn, and written, too."""
    assert {field.name for field in fields(TraceRecord)} == {
        "request_id", "scheduled_ns", "max_tokens", "messages", "prompt_text", "prompt_token_ids",
        "prompt_token_count", "prompt_blocks", "slo_class", "session_id", "turn", "think_time_ns", "tags", "checker",
        "disconnect_after_tokens", "disconnect_after_ns", "read_tokens_per_s", "limit_tokens",
    }  # fmt: skip


@given(st.lists(st.integers(0, 10**18), min_size=2, max_size=2))
def test_times_of_decades_keep_their_order_and_a_tenth_of_a_microsecond(times_ns: list[int]) -> None:
    earlier, later = sorted(times_ns)
    read = [
        NativeRow.model_validate_json(native_line(replace(counted("a"), scheduled_ns=time))).to_record().scheduled_ns
        for time in (earlier, later)
    ]
    assert read == sorted(read)
    assert all(abs(found - asked) < 100 for found, asked in zip(read, (earlier, later), strict=True))


def test_a_file_reads_back_as_its_records_with_a_line_each(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    there = [*session("s\u2028", [0.5, 1]), counted("é", 1.25)]
    write_native(path, there)
    assert read_trace(path) == there
    assert len(path.read_text(encoding="utf-8").split("\n")) == 4


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (TraceRecord("a", 0, 3), "expected exactly one of messages, prompt, prompt_tokens and prompt_token_ids"),
        (counted("a", think_time_ns=1), "expected think_time only on turns above 1"),
        (TraceRecord("a", 0, 3, prompt_text="\ud800"), "field prompt: "),
        (TraceRecord("a", 0, 3, prompt_text="x" * LONGEST_ROW_BYTES), "its row is longer than the 16 MB"),
    ],
    ids=["no prompt", "think time without turn", "half a character", "longer than is read"],
)
def test_a_record_that_no_row_can_hold_leaves_no_file(tmp_path: Path, record: TraceRecord, told: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^Request 'a' cannot be written.*{told}"):
        write_native(tmp_path / "out.jsonl", [counted("first"), record])
    assert not list(tmp_path.iterdir())
