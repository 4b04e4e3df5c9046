"""Azure's CSV: both timestamp styles, exact to the nanosecond, and exact errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.lengths_files import imported, refusal, write_lines
from tests.traffic.records import patiently

from quantgate.traces.reader import read_trace
from quantgate.traces.record import TraceRecord
from quantgate.traces.timestamps import timestamp_to_ns
from quantgate.traces.transform_record import TransformRecord
from quantgate_engine.errors import ConfigurationError

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def test_the_2023_style_is_exact_to_its_seventh_digit(tmp_path: Path) -> None:
    trace = tmp_path / "azure.csv"
    trace.write_text(
        HEADER + "2023-11-16 23:59:59.9999999,374,44\n2023-11-17 00:00:00.0000001,396,109\n2023-11-17 00:00:02,1,1"
    )
    assert read_trace(trace) == [
        TraceRecord("azure-000001", 0, 44, prompt_token_count=374),
        TraceRecord("azure-000002", 200, 109, prompt_token_count=396),
        TraceRecord("azure-000003", 2_000_000_100, 1, prompt_token_count=1),
    ]


def test_the_2024_style_mixes_fractions_with_whole_seconds(tmp_path: Path) -> None:
    trace = tmp_path / "azure.csv"
    trace.write_text(
        HEADER + "2024-05-11 23:59:59.009930+00:00,10,2\n2024-05-12 00:00:00+00:00,11,3\n"
        "2024-05-12 02:00:01.5+02:00,12,4\n"
    )
    assert [record.scheduled_ns for record in read_trace(trace)] == [0, 990_070_000, 2_490_070_000]


@patiently
@given(
    st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1)),
    st.integers(0, 999),
    st.integers(-14 * 60, 14 * 60),
)
def test_timestamps_agree_with_datetime_and_add_its_missing_digits(
    moment: datetime, nanoseconds: int, offset_minutes: int
) -> None:
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    text = zoned.strftime("%Y-%m-%d %H:%M:%S") + f".{moment.microsecond:06d}{nanoseconds:03d}"
    text += zoned.isoformat()[-6:]
    expected = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000 + nanoseconds
    assert timestamp_to_ns(text) == expected


@pytest.mark.parametrize("text", ["", "2023-11-16", "16.11.2023 18:15:46", "2023-13-16 18:15:46", "1700000000"])
def test_other_texts_are_no_timestamps(text: str) -> None:
    with pytest.raises(ValueError, match=r"timestamp|month"):
        timestamp_to_ns(text)


BAD_ROWS = [
    ("yesterday,374,44", "line 3, field TIMESTAMP: expected a time such as 2023-11-16 18:17:03.9799600"),
    (
        "2023-11-16 18:15:47,374,-4",
        "line 3, field GeneratedTokens: expected an integer from 0 to 999999999, got '-4'.",
    ),
    (
        "2023-11-16 18:15:47,37.5,4",
        "line 3, field ContextTokens: expected an integer from 0 to 999999999, got '37.5'.",
    ),
    ("2023-11-16 18:15:47,9999999999,4", "line 3, field ContextTokens: expected an integer from 0 to 999999999"),
    (
        "2023-11-16 18:15:47,,4",
        "line 3, field ContextTokens: expected an integer from 0 to 999999999, got ''.",
    ),
    ('2023-11-16 18:15:47,"374,4', "line 3: expected a row of CSV on one line, got another text (unexpected end"),
    ("2023-11-16 18:15:47,374", "line 3: expected 3 columns (TIMESTAMP, ContextTokens, GeneratedTokens), got 2."),
    (
        "2023-11-16 18:15:47,3\r74,4",
        "line 3, field ContextTokens: expected an integer from 0 to 999999999, got '3\\r74'.",
    ),
    ("2023-11-16 18:15:45.5,374,4", "line 3: expected a time not before the previous row's; it lies 0.500000 s before"),
]


@pytest.mark.parametrize(("row", "sentence"), BAD_ROWS)
def test_a_wrong_row_is_named_with_line_and_column(tmp_path: Path, row: str, sentence: str) -> None:
    trace = tmp_path / "azure.csv"
    trace.write_text(HEADER + "2023-11-16 18:15:46,1,1\n" + row)
    with pytest.raises(ConfigurationError) as caught:
        read_trace(trace)
    assert str(caught.value).startswith(f"{trace}, {sentence}")


def test_an_explicit_format_wants_its_header(tmp_path: Path) -> None:
    trace = tmp_path / "azure.csv"
    trace.write_text("time,in,out\n2023-11-16 18:15:46,1,1\n")
    with pytest.raises(ConfigurationError, match=r"line 1: expected the header TIMESTAMP,.* got 'time,in,out'"):
        read_trace(trace, "azure-csv")


def test_rows_without_prompt_or_answer_are_left_out_and_counted(tmp_path: Path) -> None:
    trace = write_lines(
        tmp_path / "azure.csv",
        HEADER.strip(),
        "2023-11-16 18:15:46,0,44",
        "2023-11-16 18:15:47,374,44",
        "2023-11-16 18:15:47.5,374,0",
        "2023-11-16 18:15:48,0,0",
        "2023-11-16 18:15:49,5,6",
    )
    (step,) = imported(trace).steps
    assert step == TransformRecord("read trace", {"left_out": {"without_prompt": 2, "empty_answer": 1}}, 5, 2, 3)
    assert imported(trace).records == [
        TraceRecord("azure-000002", 0, 44, prompt_token_count=374),
        TraceRecord("azure-000005", 2_000_000_000, 6, prompt_token_count=5),
    ]
    assert refusal(trace, strict=True) == (
        "azure.csv, line 2, field ContextTokens: expected a prompt of at least one token, got 0; mend or remove the "
        "row, or read the trace without strict."
    )


def test_a_row_that_is_left_out_may_not_be_wrong_besides(tmp_path: Path) -> None:
    trace = write_lines(tmp_path / "azure.csv", HEADER.strip(), "yesterday,0,44", "2023-11-16 18:15:47,374,44")
    assert refusal(trace).startswith("azure.csv, line 2, field TIMESTAMP: expected a time such as")
