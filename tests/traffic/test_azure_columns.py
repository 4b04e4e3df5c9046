"""Azure's CSV read in columns is what it is read row by row: the same rows, and the same refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import patiently

from quantgate.traces import azure_columns
from quantgate.traces.azure_columns import azure_batches
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.left_out_rows import LeftOutRows
from quantgate.traces.reader import import_trace
from quantgate.traces.transform_record import TransformRecord
from quantgate_engine.errors import ConfigurationError

HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens"
Rows = list[tuple[int, int, int]]
Found = tuple[Rows, TransformRecord]


def in_columns(path: Path, piece_bytes: int, *, strict: bool = False) -> Found:
    left_out = LeftOutRows(str(path), strict=strict)
    rows = [
        row
        for batch in azure_batches(path, left_out, piece_bytes)
        for row in zip(
            batch.scheduled_ns.tolist(), batch.input_tokens.tolist(), batch.output_tokens.tolist(), strict=True
        )
    ]
    return rows, left_out.step(len(rows), {})


def row_by_row(path: Path, *, strict: bool = False) -> Found:
    trace = import_trace(path, ImportSettings("azure-csv", strict=strict))
    rows = [(record.scheduled_ns, record.prompt_token_count or 0, record.max_tokens) for record in trace.records]
    return rows, trace.steps[0]


def outcome(read: Callable[[], Found]) -> Found | str:
    try:
        return read()
    except ConfigurationError as error:
        return str(error)


def stamp(ns: int, style: str) -> str:
    """A time after 2024-05-10 as one of the styles writes it."""
    seconds, fraction = divmod(ns, 1_000_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if style == "far":
        return f"2024-05-10 {(seconds // 3600 + 2) % 24:02d}{clock[2:]}.{fraction:09d}+02:00"
    zone = {"2023": "", "2024": "+00:00", "Z": "Z", "T": "", "long": "+00:00", "minus": "-00:00"}[style]
    digits = f".{fraction:09d}" if fraction or style == "long" else ""
    return f"2024-05-10{'T' if style == 'T' else ' '}{clock}{digits}{'123' if style == 'long' else ''}{zone}"


@st.composite
def good_files(draw: st.DrawFn) -> bytes:
    """Every way to write rows that are right; most rows are plain."""
    styles = st.sampled_from(["2023", "2024", "2024", "2024", "Z", "T", "long", "minus", "far"])
    moments = st.one_of(st.integers(0, 20 * 3600).map(lambda seconds: seconds * 10**9), st.integers(0, 72 * 10**12))
    lines = []
    for moment in sorted(draw(st.lists(moments, min_size=1, max_size=30))):
        cells = [stamp(moment, draw(styles)), *(str(draw(st.integers(1, 999_999_999))) for _ in range(2))]
        odd = draw(st.sampled_from(["", "", "", "", "spaces", "quotes", "zeros", "blank", "no prompt", "no answer"]))
        if odd == "spaces":
            cells = [f" {cell}  " for cell in cells]
        if odd == "quotes":
            cells = [f'"{cell}"' for cell in cells]
        if odd == "zeros":
            cells[1] = "007"
        if odd in ("no prompt", "no answer"):
            cells[1 if odd == "no prompt" else 2] = "0"
        lines.append(",".join(cells))
        if odd == "blank":
            lines.append(draw(st.sampled_from(["", "   ", "\t"])))
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    body = end.join([HEADER, *(line.encode() for line in lines)])
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return mark + body + draw(st.sampled_from([b"", end, end + end]))


@patiently
@given(good_files(), st.integers(1, 900), st.booleans())
def test_columns_are_the_rows(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, piece_bytes: int, strict: bool
) -> None:
    path = tmp_path_factory.mktemp("azure") / "trace.csv"
    path.write_bytes(content)
    found = outcome(lambda: in_columns(path, piece_bytes, strict=strict))
    assert found == outcome(lambda: row_by_row(path, strict=strict))


@patiently
@given(
    good_files(),
    st.integers(1, 900),
    st.integers(0, 10**6),
    st.sampled_from(
        [b"", b",", b"x", b"0x1F", b"-", b"+", b" ", b"\r", b"\n", b'"', b"\xe9", b"\xd9\xa3", b"0000000001",
         b"\xef\xbb\xbf", b"2024-02-30 00:00:00,1,1\n",
         b"9999-12-31 00:00:00,1,1\n", b"0001-01-01 00:00:00,1,1\n", b"2024-05-10,1,1\n",
         b"2024-05-10 00:00:00.,1,1\n", b"2024-05-10 24:00:00,1,1\n", b"2024-05-10 00:00:60,1,1\n",
         b"2024-05-10 00:00:00,1,1\n", b"2200-01-01 00:00:00,1,1\n", b"\xef\xbb\xbf2024-05-10 23:59:59,1,1\n"]
    ),
)  # fmt: skip
def test_damage_is_refused_in_the_same_words(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, piece_bytes: int, place: int, damage: bytes
) -> None:
    path = tmp_path_factory.mktemp("azure") / "trace.csv"
    place = place % (len(content) - len(HEADER)) + len(HEADER)
    if damage.endswith(b"\n"):
        place = content.find(b"\n", place) + 1 or len(content)
    path.write_bytes(content[:place] + damage + content[place + (not damage) :])
    assert outcome(lambda: in_columns(path, piece_bytes)) == outcome(lambda: row_by_row(path))


def many_rows(count: int) -> list[str]:
    return [f"2024-05-10 00:{number // 60:02d}:{number % 60:02d},{number + 1},7" for number in range(count)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2024-05-10 01:00:00,5", "expected 3 columns (TIMESTAMP, ContextTokens, GeneratedTokens), got 2."),
        ("2024-05-10 01:00:00,5,-1", "field GeneratedTokens: expected an integer from 0 to 999999999, got '-1'."),
        ("2024-05-10 01:00:00,5,0", "field GeneratedTokens: expected an answer of at least one token, got 0; "),
        ("2024-05-10 00:00:01,5,5", "expected a time not before the previous row's; it lies "),
    ],
)
def test_a_wrong_row_in_the_third_piece_is_named_by_its_line(tmp_path: Path, row: str, words: str) -> None:
    rows = many_rows(300)
    path = tmp_path / "azure.csv"
    path.write_text("\n".join([HEADER.decode(), "", *rows[:250], "", row, *rows[250:]]))
    batches = azure_batches(path, LeftOutRows(str(path), strict=True), piece_bytes=3000)
    assert [len(next(batches).scheduled_ns) for _ in range(2)] == [120, 116]
    with pytest.raises(ConfigurationError) as refused:
        next(batches)
    assert str(refused.value).startswith(f"{path}, line 254")
    assert words in str(refused.value)


def test_plain_rows_are_never_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "azure.csv"
    styles = ["2023", "2024", "Z", "T"]
    times_ns = [number * 1_250_000_100 for number in range(300)]
    rows = [f"{stamp(ns, styles[number % 4])},{number + 1},7" for number, ns in enumerate(times_ns)]
    path.write_text("\n".join([HEADER.decode(), *rows]))
    monkeypatch.setattr(azure_columns, "azure_row", None)
    assert in_columns(path, 1000)[0] == [(ns, number + 1, 7) for number, ns in enumerate(times_ns)]


def test_a_piece_that_starts_before_the_last_one_ended_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "azure.csv"
    path.write_text("\n".join([HEADER.decode(), *many_rows(200), *many_rows(200)]))
    with pytest.raises(ConfigurationError, match="line 202: expected a time not before the previous row's"):
        in_columns(path, len("\n".join(many_rows(200))))


def test_a_row_without_end_is_refused_before_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "azure.csv"
    path.write_bytes(HEADER + b"\n2024-05-10 00:00:00,1,1\n" + b"1" * 40_000_000)
    with pytest.raises(ConfigurationError, match="line 3: expected a row of at most 16 MB"):
        in_columns(path, 1000)
