"""Trace files of another form, and values out of all proportion, are refused in one short sentence on one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quantgate.traces.openai_log.times import LogClock, duration_ns
from quantgate.traces.reader import read_trace
from quantgate.traces.timestamps import timestamp_to_ns
from quantgate_engine.errors import ConfigurationError

ROW: dict[str, Any] = {"id": "a", "offset": 0, "prompt": "x", "max_tokens": 3}
LOG: dict[str, Any] = {
    "timestamp": "2026-01-31T12:00:00Z",
    "messages": [{"role": "user", "content": "hi"}],
    "usage": {"completion_tokens": 3},
}


def refusal(folder: Path, text: str, format_name: str | None = None) -> str:
    path = folder / "t.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        read_trace(path, format_name)
    return str(refused.value).removeprefix(str(folder) + "/")


@pytest.mark.parametrize("format_name", [None, "quantgate-jsonl", "openai-log"])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_array_is_told_so(tmp_path: Path, indent: int | None, format_name: str | None) -> None:
    assert refusal(tmp_path, json.dumps([ROW, ROW], indent=indent), format_name) == (
        "t.jsonl, line 1: expected one JSON object a line, got a JSON array; write each of its entries on a line of "
        "its own, for example with `jq -c '.[]'`."
    )


def test_an_object_over_several_lines_is_told_so(tmp_path: Path) -> None:
    assert "got one over several lines; write each object on one line" in refusal(tmp_path, json.dumps(ROW, indent=1))


@pytest.mark.parametrize(
    "rows",
    [
        [ROW | {"a\nb": 1}],
        [ROW | {"k" * 5000: 1}],
        [ROW | {"id": "x" * 5000}] * 2,
        [ROW | {"session": "s" * 5000, "turn": 3}],
        [
            ROW | {"session": "s" * 5000, "class": "c\n" * 5000},
            ROW | {"id": "b", "session": "s" * 5000, "turn": 2, "class": "d" * 5000},
        ],
        ["TIMESTAMP,ContextTokens,GeneratedTokens", "x" * 5000 + ",1,2"],
        ["TIMESTAMP,ContextTokens,GeneratedTokens", "2024-05-10 00:00:00," + "1" * 5000 + ",2"],
        [LOG | {"usage": {"completion_tokens": "1e999999999"}}],
        [LOG | {"status": 10**4000}],
        [LOG | {"latency_s": "1e999999"}],
    ],
)
def test_the_sentence_is_short_and_on_one_line(tmp_path: Path, rows: list[Any]) -> None:
    sentence = refusal(tmp_path, "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    assert sentence.isprintable()
    assert len(sentence) < 400


def test_digits_below_a_nanosecond_are_left_out() -> None:
    whole = timestamp_to_ns("2026-01-31T12:00:00Z")
    assert timestamp_to_ns("2026-01-31T12:00:00.123456789999Z") == whole + 123_456_789
    assert LogClock("auto").to_ns(f"2026-01-31T12:00:00.{'1' * 40}") == whole + 111_111_111


@pytest.mark.parametrize("value", ["1e999999", "9e999999999999999990", "-1e999999", 10**3000])
def test_a_number_beyond_all_times_is_no_time(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a time from 1970 to 2262"):
        LogClock("s").to_ns(value)
    with pytest.raises(ValueError, match="expected a time from 1970 to 2262"):
        duration_ns(value, "s")
