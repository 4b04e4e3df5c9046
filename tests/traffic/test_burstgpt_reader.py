"""BurstGPT's CSV: both releases, failed requests counted, sessions with their think times, and exact errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.traffic.lengths_files import BURSTGPT, BURSTGPT_3, imported, refusal, write_lines
from tests.traffic.records import SECOND

from quantgate.traces.record import TraceRecord
from quantgate.traces.transform_record import TransformRecord

CHAT, API = "Conversation log", "API log"
NO_SESSIONS = {"sessions_given": 0, "overlapping_turns": 0, "think_times_from_start": 0}


def test_the_first_release_has_lengths_and_whole_seconds(tmp_path: Path) -> None:
    trace = imported(
        write_lines(
            tmp_path / "burst.csv",
            BURSTGPT,
            f"5,ChatGPT,472,18,490,{CHAT}",
            f"45,ChatGPT,1087,230,1317,{CHAT}",
            f"118,GPT-4,417,276,693,{API}",
        )
    )
    assert trace.records == [
        TraceRecord("burstgpt-000001", 0, 18, prompt_token_count=472, tags=("ChatGPT", CHAT)),
        TraceRecord("burstgpt-000002", 40 * SECOND, 230, prompt_token_count=1087, tags=("ChatGPT", CHAT)),
        TraceRecord("burstgpt-000003", 113 * SECOND, 276, prompt_token_count=417, tags=("GPT-4", API)),
    ]
    assert trace.steps == (TransformRecord("read trace", {"left_out": {}, **NO_SESSIONS}, 3, 3, 0),)


def test_rows_with_one_session_id_are_turns_that_wait_for_the_answer_before(tmp_path: Path) -> None:
    trace = imported(
        write_lines(
            tmp_path / "burst.csv",
            BURSTGPT_3,
            f"19440110.0,1722ac82,43,GPT-4,906,446,1352,{CHAT}",
            f"19440111.5,,2,ChatGPT,36,29,65,{API}",
            f"19440160.25,1722ac82,8,GPT-4,1779,123,1902,{CHAT}",
            f"19440161.0,other,8,GPT-4,10,1,11,{CHAT}",
            f"19440166.0,1722ac82,1,GPT-4,1900,5,1905,{CHAT}",
        )
    )
    assert [(r.session_id, r.turn, r.think_time_ns / SECOND, r.scheduled_ns / SECOND) for r in trace.records] == [
        ("session-000001", 1, 0, 0),
        (None, 1, 0, 1.5),
        # 50.25 s after the first request, whose answer took 43 s.
        ("session-000001", 2, 7.25, 50.25),
        ("session-000002", 1, 0, 51),
        # The log starts it 2.25 s before the second answer had ended.
        ("session-000001", 3, 0, 56),
    ]
    assert trace.steps[0].parameters == {
        "left_out": {}, "sessions_given": 1, "overlapping_turns": 1, "think_times_from_start": 0,
    }  # fmt: skip


def test_a_turn_whose_answer_has_no_known_end_is_thought_about_from_its_start(tmp_path: Path) -> None:
    rows = (f"10,a,,GPT-4,1,1,2,{CHAT}", f"14,a,1,GPT-4,1,1,2,{CHAT}")
    trace = imported(write_lines(tmp_path / "burst.csv", BURSTGPT_3, *rows))
    assert trace.records[1].think_time_ns == 4 * SECOND
    assert trace.steps[0].parameters["think_times_from_start"] == 1


def test_failed_requests_are_left_out_and_counted_and_turns_count_without_them(tmp_path: Path) -> None:
    trace = write_lines(
        tmp_path / "burst.csv",
        BURSTGPT_3,
        f"1,a,1,GPT-4,7,0,7,{CHAT}",
        f"3,a,1,GPT-4,7,2,9,{CHAT}",
        f"6,a,1,GPT-4,0,2,2,{CHAT}",
        f"9,a,1,GPT-4,9,2,11,{CHAT}",
    )
    (step,) = imported(trace).steps
    assert (step.rows_in, step.rows_out, step.rows_touched) == (4, 2, 2)
    assert step.parameters["left_out"] == {"failed": 1, "without_prompt": 1}
    records = imported(trace).records
    assert [(r.request_id, r.scheduled_ns, r.turn, r.think_time_ns) for r in records] == [
        ("burstgpt-000002", 0, 1, 0),
        ("burstgpt-000004", 6 * SECOND, 2, 5 * SECOND),
    ]
    assert refusal(trace, strict=True) == (
        "burst.csv, line 2, field Response tokens: expected a request that succeeded, got 0; mend or remove the row, "
        "or read the trace without strict."
    )


def test_a_file_of_failures_alone_is_told_so(tmp_path: Path) -> None:
    trace = write_lines(tmp_path / "burst.csv", BURSTGPT, f"1,GPT-4,7,0,7,{CHAT}", f"2,GPT-4,7,0,7,{CHAT}")
    assert refusal(trace) == (
        "burst.csv: none of its 2 rows can be replayed (failed: 2); the first one, line 2, field Response tokens: "
        "expected a request that succeeded, got 0."
    )


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    header = "Model,Timestamp,Total tokens,Request tokens,Response tokens,Log Type,Elapsed time,Session ID"
    trace = imported(write_lines(tmp_path / "burst.csv", header, f'"GPT, 4",5,9,7,2,{CHAT},1,a'))
    assert trace.records == [
        TraceRecord("burstgpt-000001", 0, 2, prompt_token_count=7, session_id="session-000001", tags=("GPT, 4", CHAT))
    ]


COUNT = "expected an integer from 0 to 999999999, got"
TIME = "expected a number of seconds from 0 to 9999999999, such as 45 or 45.25, got"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("2023-01-01,a,1,GPT-4,7,2,9,x", f", field Timestamp: {TIME} '2023-01-01'."),
        ("-1,a,1,GPT-4,7,2,9,x", f", field Timestamp: {TIME} '-1'."),
        ("1700000000000,a,1,GPT-4,7,2,9,x", f", field Timestamp: {TIME} '1700000000000'."),
        ("1e5,a,1,GPT-4,7,2,9,x", f", field Timestamp: {TIME} '1e5'."),
        ("5,a,soon,GPT-4,7,2,9,x", f", field Elapsed time: {TIME} 'soon'."),
        ("5,a,1,GPT-4,-7,2,9,x", f", field Request tokens: {COUNT} '-7'."),
        ("5,a,1,GPT-4,7.0,2,9,x", f", field Request tokens: {COUNT} '7.0'."),
        ("5,a,1,GPT-4,٧,2,9,x", f", field Request tokens: {COUNT} '٧'."),
        ("5,a,1,GPT-4,7,,9,x", f", field Response tokens: {COUNT} ''."),
        ("5,a,1,GPT-4,7,9999999999,9,x", f", field Response tokens: {COUNT} '9999999999'."),
        (
            "5,a,1,GPT-4,7,2,10,x",
            ", field Total tokens: expected 9, the sum of Request tokens and Response tokens, got '10'.",
        ),
        (
            "5,a,1,GPT-4,7,0,9,x",
            ", field Total tokens: expected 7, the sum of Request tokens and Response tokens, got '9'.",
        ),
        ("5,a,1,GPT\r4,7,2,9,x", ", field Model: expected at most 100 printable characters, got 'GPT\\r4'."),
        ("5,a,1,GPT-4,7,2,9," + "x" * 101, ", field Log Type: expected at most 100 printable characters, got 'xxx"),
        ("5,GPT-4,7,2,9,x", f": expected 8 columns ({', '.join(BURSTGPT_3.split(','))}), got 6."),
        ('5,a,1,"GPT-4,7,2,9,x', ": expected a row of CSV on one line, got another text (unexpected end of data)."),
        ("3,a,1,GPT-4,7,2,9,x", ": expected a time not before the previous row's; it lies 1.000000 s before it;"),
    ],
)
def test_a_wrong_row_is_named_with_line_and_column(tmp_path: Path, row: str, sentence: str) -> None:
    trace = write_lines(tmp_path / "burst.csv", BURSTGPT_3, f"4,b,1,GPT-4,7,2,9,{CHAT}", row)
    assert refusal(trace).startswith(f"burst.csv, line 3{sentence}")


def test_a_huge_row_is_refused_in_a_short_sentence(tmp_path: Path) -> None:
    quoted = '"' + "x" * 200_000 + '"'
    for row in ("7" * 200_000 + ",a,1,GPT-4,7,2,9,x", f"4,{quoted},1,GPT-4,7,2,9,x"):
        assert len(refusal(write_lines(tmp_path / "burst.csv", BURSTGPT_3, row))) < 300


@pytest.mark.parametrize("header", [BURSTGPT + ",Weather", BURSTGPT + ",Model", "Timestamp,Model"])
def test_an_explicit_format_wants_its_columns(tmp_path: Path, header: str) -> None:
    trace = write_lines(tmp_path / "burst.csv", header, "5,GPT-4,7,2,9,x,y")
    assert refusal(trace, format_name="burstgpt-csv").startswith(
        f"burst.csv, line 1: expected the columns {BURSTGPT}, each once, and beside them only Session ID and Elapsed "
        "time, got 'Timestamp,Model"
    )
