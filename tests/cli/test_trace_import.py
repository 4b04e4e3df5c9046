"""`quantgate trace import` and `transform`: traces of any format become files of ours, which say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import read, section, table_rows, words_in_code
from tests.traffic.log_files import chat_row, write_log
from typer.testing import CliRunner

from quantgate.cli.main import app
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.native_reader import NativeTrace
from quantgate.traces.reader import import_trace, open_trace, read_trace
from quantgate_engine.errors import ConfigurationError

NOON = 1_769_860_800
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"


def trace_command(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["trace", *map(str, arguments)])


def printed(*arguments: str | Path) -> str:
    result = trace_command(*arguments)
    assert result.exit_code == 0, result.exception
    return str(result.stdout)


def refusal(*arguments: str | Path) -> str:
    error = trace_command(*arguments).exception
    assert isinstance(error, ConfigurationError), error
    return str(error)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(
        tmp_path / "access.jsonl",
        chat_row(NOON + 0.25, "hi"),
        chat_row(NOON, "I am anna@example.org", session_id="s"),
        chat_row(NOON + 1, "broken", status_code=500),
        chat_row(NOON + 9, "I am anna@example.org", "fine", "Now?", session_id="s", tags=["chat"]),
    )


@pytest.fixture
def azure(tmp_path: Path) -> Path:
    path = tmp_path / "azure.csv"
    rows = [f"2024-05-10 00:00:{at // 4:02d}.{at % 4}000001+00:00,{100 + at},{1 + at}" for at in range(80)]
    path.write_text("\n".join([AZURE, *rows]))
    return path


def test_an_imported_log_reads_as_the_log_does(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out.jsonl"
    text = printed("import", log, "--out", out)
    assert read_trace(out) == read_trace(log)
    assert open_trace(out, ImportSettings())[0].name == NativeTrace.name
    assert f"{out}: 3 rows in 9 s" in text
    assert "step redact: 3 rows in, 3 out, 2 touched; found: {'EMAIL': 1}" in text
    assert "left_out: {'failed': 1}" in text
    assert "anna@example.org" not in out.read_text()


def test_the_flags_of_reading_are_followed(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out.jsonl"
    printed("import", log, "--out", out, "--no-redact")
    assert read_trace(out) == import_trace(log, ImportSettings(redact=False)).records
    assert "line 3" in refusal("import", log, "--out", tmp_path / "b.jsonl", "--strict")
    assert "azure-csv" in refusal("import", log, "--out", tmp_path / "b.jsonl", "--format", "csv")
    columns = tmp_path / "columns.yaml"
    columns.write_text("schema: quantgate.columns/1\nonly: [{path: session_id, equals: s}]\n")
    printed("import", log, "--out", tmp_path / "s.jsonl", "--columns", columns)
    assert [record.turn for record in read_trace(tmp_path / "s.jsonl")] == [1, 2]
    image = {"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {}}]}
    pictures = write_log(tmp_path / "pictures.jsonl", chat_row(NOON) | {"request": {"messages": [image]}})
    assert "image_url" in refusal("import", pictures, "--out", tmp_path / "p.jsonl")
    printed("import", pictures, "--out", tmp_path / "p.jsonl", "--other-parts", "drop")
    moon = tmp_path / "moon.jsonl"
    moon.write_text(json.dumps({"timestamp": 0, "input_length": 40, "output_length": 2, "hash_ids": [0, 1, 2]}))
    printed("import", moon, "--out", tmp_path / "m.jsonl", "--block-tokens", "16")
    assert read_trace(tmp_path / "m.jsonl") == import_trace(moon, ImportSettings(block_tokens=16)).records


def test_a_transformed_trace_has_what_the_flags_leave_and_counts_each_step(tmp_path: Path, azure: Path) -> None:
    out = tmp_path / "out.jsonl"
    flags = ["--window", "5:10", "--thin", "0.5", "--speed", "2", "--rate-cap", "3", "--seed", "4"]
    document = json.loads(printed("transform", azure, "--out", out, *flags, "--json"))
    records = read_trace(out)
    steps = {step["name"]: step for step in document["steps"]}
    assert list(steps)[-4:] == ["window", "thin", "speed", "rate_cap"]
    assert steps["window"]["rows_out"] == 40
    assert steps["rate_cap"]["rows_out"] == len(records) == document["rows"] < steps["thin"]["rows_out"] < 40
    assert {record.prompt_token_count for record in records} <= set(range(120, 160))
    assert records[-1].scheduled_ns <= 5_000_000_000
    other = tmp_path / "other.jsonl"
    printed("transform", azure, "--out", other, *flags[:-1], "5")
    assert read_trace(other) != records
    again = tmp_path / "again.jsonl"
    printed("transform", azure, "--out", again, *flags)
    assert again.read_bytes() == out.read_bytes()


def test_all_transforms_of_a_replay_can_be_written(tmp_path: Path, azure: Path) -> None:
    out = tmp_path / "out.jsonl"
    flags = ["--max-prompt-tokens", "170", "--max-output-tokens", "60", "--clip-policy", "cut", "--sample", "50"]
    names = ["--limit", "20", "--arrivals", "poisson:5"]
    document = json.loads(printed("transform", azure, "--out", out, *flags, *names, "--json"))
    assert [step["name"] for step in document["steps"]][-4:] == ["clip", "sample", "limit", "arrivals"]
    assert len(read_trace(out)) == 20
    ticking = tmp_path / "ticking.csv"
    rows = [f"2024-05-10 00:00:{3 * (number // 2):02d}+00:00,9,9" for number in range(38)]
    ticking.write_text("\n".join([AZURE, *rows]))
    printed("transform", ticking, "--out", tmp_path / "spread.jsonl", "--spread-ticks", "auto")
    assert len({record.scheduled_ns for record in read_trace(tmp_path / "spread.jsonl")}) == 38


def test_a_tokenizer_cuts_texts_to_ids_that_are_read_again(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out.jsonl"
    cut = ["--max-prompt-tokens", "3", "--clip-policy", "cut"]
    assert "--tokenizer" in refusal("transform", log, "--out", out, *cut)
    printed("transform", log, "--out", out, *cut, "--tokenizer", "smollm2-135m-instruct")
    assert [len(record.prompt_token_ids or ()) for record in read_trace(out)] == [3, 3, 3]


def test_no_file_is_overwritten_unless_that_is_asked_for_and_the_trace_itself_never(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("mine")
    before = log.read_bytes()
    assert refusal("import", log, "--out", out) == (
        f"--out is {out}, which is there already; name another file or add --force."
    )
    assert out.read_text() == "mine"
    assert "the trace itself" in refusal("import", log, "--out", log, "--force")
    assert "is no folder" in refusal("import", log, "--out", tmp_path / "no" / "out.jsonl")
    assert "is a folder" in refusal("import", log, "--out", tmp_path)
    assert log.read_bytes() == before
    printed("import", log, "--out", out, "--force")
    assert len(read_trace(out)) == 3


def test_a_mistake_in_the_trace_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    bad = write_log(tmp_path / "bad.jsonl", '{"id": "a", "offset": 0, "prompt": "x", "max_tokens": 1}', '{"id": 3}')
    out = tmp_path / "out.jsonl"
    out.write_text("mine")
    assert "line 2" in refusal("import", bad, "--out", out, "--force")
    assert out.read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"bad.jsonl", "out.jsonl"}


def test_the_document_has_the_fields_that_its_page_tells(tmp_path: Path, log: Path) -> None:
    document = json.loads(printed("import", log, "--out", tmp_path / "out.jsonl", "--json"))
    assert document["schema"] == "quantgate.trace-written/1"
    page = section(read("docs/commands/trace.md"), "## import")
    told = {name for row in table_rows(page) for name in words_in_code(row[0])}
    assert {name for name in told if not name.startswith("-")} == document.keys() - {"schema"}
