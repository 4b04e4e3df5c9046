"""What holds for trace files of every format: finding, decoding, and rows that must fit together."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from tests.traffic.records import counted, session

from quantgate.traces.consistency import check_consistency
from quantgate.traces.reader import read_trace
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import LocatedRecord, TraceFormat, register_trace_format, trace_formats
from quantgate.traces.source_text import LONGEST_ROW_BYTES, read_lines, trace_sha256
from quantgate_engine.errors import ConfigurationError

ROW = b'{"id": "a", "offset": 0, "prompt": "hi", "max_tokens": 3}\n'


def refusal(path: Path, format_name: str | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read_trace(path, format_name)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "no such trace file" in refusal(tmp_path / "none.jsonl")
    assert "cannot be read" in refusal(tmp_path)


def test_what_never_ends_is_no_trace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert refusal(path) == f"{path}: the trace cannot be read (it is no regular file); expected a file."


def test_times_that_lie_decades_apart_are_refused(tmp_path: Path) -> None:
    trace = tmp_path / "x.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n0001-01-01 00:00:00,5,6\n9999-12-31 23:59:59,5,6\n")
    assert refusal(trace).startswith(
        f"{trace}, line 3: expected a time within 1000000000 s of the first row's, got one "
    )


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"  \r\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    trace = tmp_path / "empty.jsonl"
    trace.write_bytes(content)
    assert "is empty; expected at least one request" in refusal(trace)


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "x.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens")
    assert "a header and no rows" in refusal(trace)


def test_bytes_that_are_no_utf_8_are_named_by_line_and_byte(tmp_path: Path) -> None:
    trace = tmp_path / "x.jsonl"
    trace.write_bytes(ROW + b'{"id": "caf\xe9"}\n')
    assert refusal(trace) == (
        f"{trace}, line 2, byte 12: expected UTF-8 text, got the byte 0xe9; save the file as UTF-8."
    )


def test_a_row_that_no_model_could_read_is_refused_before_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b" " * (LONGEST_ROW_BYTES + 1) + b"\n")
    with pytest.raises(ConfigurationError) as refused:
        list(read_lines(path))
    assert str(refused.value) == (
        f"{path}, line 2: expected a row of at most 16 MB, got a longer one; shorten or remove the row."
    )
    path.write_bytes(b'{"a": 1}\n' + b" " * (LONGEST_ROW_BYTES - 9) + b'{"b": 2}\n')
    assert [line.number for line in read_lines(path)] == [1, 2]


def test_byte_order_marks_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    trace = tmp_path / "x.csv"
    trace.write_bytes(b"\xef\xbb\xbfTIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46,5,6\r\n")
    assert read_trace(trace) == [TraceRecord("azure-000001", 0, 6, prompt_token_count=5)]


def test_an_unknown_format_lists_the_known_ones(tmp_path: Path) -> None:
    trace = tmp_path / "x.txt"
    trace.write_bytes(b"hello\n")
    assert "x.txt, line 1: the format of this trace is not recognised" in refusal(trace)
    assert refusal(trace, "parquet") == (
        f"Trace format 'parquet' is unknown; expected one of: {', '.join(sorted(trace_formats()))}."
    )


def test_formats_are_registered_once() -> None:
    assert set(trace_formats()) >= {"azure-csv", "openai-log", "otel-spans", "quantgate-jsonl", "sharegpt-json"}
    existing: type[TraceFormat] = type(trace_formats()["azure-csv"])
    with pytest.raises(ValueError, match="registered already"):
        register_trace_format(existing)


def test_the_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    trace = tmp_path / "x.jsonl"
    trace.write_bytes(ROW)
    assert trace_sha256(trace) == hashlib.sha256(ROW).hexdigest()


def located(records: list[TraceRecord]) -> list[LocatedRecord]:
    return [LocatedRecord(line, record) for line, record in enumerate(records, start=1)]


def test_rows_that_fit_together_pass_unchanged() -> None:
    records = [*session("s", [0, 1]), counted("r", 1), *session("t", [2, 2])]
    assert check_consistency(located(records), "x") == records


def test_a_gap_in_the_turns_is_refused() -> None:
    first, _, third = session("s", [0, 1, 2])
    with pytest.raises(ConfigurationError, match="line 2, field turn: expected 2, the next turn of session 's', got 3"):
        check_consistency(located([first, third]), "x")


def test_a_repeated_turn_is_refused() -> None:
    first = session("s", [0])[0]
    again = counted("other", 1, session_id="s", turn=1)
    with pytest.raises(ConfigurationError, match="field turn: expected 2"):
        check_consistency(located([first, again]), "x")


def test_a_session_keeps_its_class() -> None:
    first = session("s", [0])[0]
    second = counted("other", 1, session_id="s", turn=2, slo_class="batch")
    with pytest.raises(ConfigurationError, match="field class: expected 'interactive'"):
        check_consistency(located([first, second]), "x")


NO_TIME = "field timestamp: expected the time of the request, got nothing"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ('{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 20, "completion_tokens": 5}', NO_TIME),
        ('{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 20}', NO_TIME),
        ('{"id": "cmpl-1", "model": "m", "prompt": "hi", "max_tokens": 3}', NO_TIME),
        ('{"id": "a", "prompt": "hi", "max_tokens": 3}', "field offset: expected a number"),
    ],
)
def test_a_first_row_without_a_time_is_told_so_in_the_words_of_its_format(
    tmp_path: Path, row: str, sentence: str
) -> None:
    trace = tmp_path / "x.jsonl"
    trace.write_text(row + "\n")
    assert f"line 1, {sentence}" in refusal(trace)
